"""The command as a whole."""

import json
import os
import subprocess
import sys

import pytest

from horizon_rl import __version__
from horizon_rl.cli import COMMANDS, main


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"horizon-rl {__version__}\n"


@pytest.mark.parametrize("args", [[], ["--help"], ["-h"]])
def test_help_lists_every_command(args, capsys):
    assert main(args) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_explains_every_command(name, capsys):
    with pytest.raises(SystemExit) as exit_:
        main([name, "--help"])
    assert exit_.value.code == 0
    assert f"usage: horizon {name}" in capsys.readouterr().out


def test_help_waits_for_no_simulator():
    code = """
import sys
from horizon_rl.cli import COMMANDS, main
for name in COMMANDS:
    try:
        main([name, "--help"])
    except SystemExit:
        pass
    assert not {"torch", "mujoco", "scipy"} & set(sys.modules), name
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_no_words_of_python(name, capsys):
    with pytest.raises(SystemExit):
        main([name, "--help-all"])
    assert "None" not in capsys.readouterr().out


def test_unknown_command_is_answered_with_a_suggestion_and_code_2(capsys):
    assert main(["rehears"]) == 2
    assert "unknown command 'rehears': did you mean 'rehearse'" in (
        capsys.readouterr().err
    )


def test_unknown_flag_is_answered_with_a_suggestion_and_code_2(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["rehearse", "--curriculum.alpa", "1"])
    assert exit_.value.code == 2
    assert "--curriculum.alpha" in capsys.readouterr().err


def test_small_commands_do_not_wait_for_torch():
    code = "import sys; from horizon_rl.cli import main; main(['domains']); "
    code += "print('torch' in sys.modules, 'mujoco' in sys.modules)"
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "False False"


def test_reader_that_stops_reading_is_no_error():
    command = f"{sys.executable} -m horizon_rl domains --json | head -n 1"
    run = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert run.stdout == "{\n" and run.stderr == ""


@pytest.mark.parametrize("args", [["rehears"], ["pages", "none.md"]])
def test_exit_code_of_bad_input_says_so_where_nothing_can_be_printed(args):
    read, write = os.pipe()
    os.close(read)
    with open(write, "wb") as nowhere:
        command = [sys.executable, "-m", "horizon_rl", *args]
        assert subprocess.run(command, stdout=nowhere, stderr=nowhere).returncode == 2


def test_full_gpu_is_told_in_one_line(capsys, monkeypatch):
    torch = pytest.importorskip("torch")

    def fill(cmd):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")

    monkeypatch.setattr("horizon_rl.cli.domains.run", fill)
    assert main(["domains"]) == 1
    err = capsys.readouterr().err
    assert "memory of the GPU is full: take fewer worlds" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "command, hint", [("domains", "is full\n"), ("train", "is full: take fewer worlds")]
)
def test_full_memory_is_told_with_what_helps_the_command(
    capsys, monkeypatch, command, hint
):
    def fill(args):
        raise MemoryError

    monkeypatch.setattr("horizon_rl.cli._dispatch", fill)
    assert main([command]) == 1
    assert f"horizon: the memory {hint}" in capsys.readouterr().err


def test_bench_measures_the_core(capsys):
    assert main(["bench", "curriculum", "--repeats", "1", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert all(value > 0.0 for value in figures.values())
    assert "decision_us" in figures and "import_s" in figures
