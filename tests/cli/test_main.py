"""The command as a whole."""

import json
import subprocess
import sys

import pytest

from horizon_rl import __version__
from horizon_rl.cli import main

COMMANDS = ("rehearse", "domains", "bench")


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"horizon-rl {__version__}\n"


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_help_explains_every_command(command, capsys):
    with pytest.raises(SystemExit) as exit_:
        main([*command, "--help"])
    assert exit_.value.code == 0
    out = capsys.readouterr().out
    for name in command or COMMANDS:
        assert name in out


@pytest.mark.parametrize("args", [["rehears"], ["rehearse", "--curriculum.alpa", "1"]])
def test_typo_is_answered_with_a_suggestion_and_code_2(args, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(args)
    assert exit_.value.code == 2
    err = capsys.readouterr().err
    assert "rehearse" in err or "--curriculum.alpha" in err


def test_reader_that_stops_reading_is_no_error():
    command = f"{sys.executable} -m horizon_rl domains --json | head -n 1"
    run = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert run.stdout == "{\n" and run.stderr == ""


def test_bench_measures_the_core(capsys):
    assert main(["bench", "curriculum", "--repeats", "1", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert all(value > 0.0 for value in figures.values())
    assert "decision_us" in figures and "import_s" in figures
