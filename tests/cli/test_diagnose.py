"""`horizon diagnose`, as a user runs it."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

pytest.importorskip("scipy")

from horizon_rl.cli import main
from horizon_rl.curriculum import CurriculumCfg, choose_method
from horizon_rl.domains import paper_catalogue
from horizon_rl.rehearsal import Rehearsal, RehearsalCfg
from horizon_rl.runs.journal import create_curriculum, replay

PAGE = Path(__file__).parents[2] / "docs" / "diagnostic.md"


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    for seed in (0, 1):
        run = folder / f"seed-{seed}"
        rehearsal = Rehearsal.create(
            RehearsalCfg(method="paper", seed=seed), paper_catalogue(), run
        )
        list(rehearsal.phases())
        rehearsal.close()
    return sorted(folder.iterdir())


def diagnose(capsys, *args) -> str:
    assert main(["diagnose", *map(str, args)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def bad(capsys, *args) -> str:
    """Run a command that must be refused; return its one line of complaint."""
    assert main(["diagnose", *map(str, args)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith("horizon: ")
    return err


def test_table_fits_80_columns_and_has_every_class(runs, capsys):
    out = diagnose(capsys, runs[0])
    assert "…" not in out and max(map(len, out.splitlines())) <= 80
    for words in ("full pass", "checkpoint fail", "tracking fail", "low length"):
        assert words in out
    entries = replay(runs[0] / "journal.jsonl").entries
    assert f"{len(entries) - 1} frontier phases of 1 run(s)" in out
    assert "Left out: 1 phase(s) at the baseline" in out


def test_table_and_json_say_the_same(runs, capsys):
    data = json.loads(diagnose(capsys, *runs, "--json"))
    out = diagnose(capsys, *runs)
    assert data["runs"] == 2 and data["horizon"] == 3
    row = data["rows"][0]
    assert row["outcome"] == "full pass"
    shown = next(line for line in out.splitlines() if line.startswith("full pass"))
    assert shown.split()[2:] == [
        str(row["phases"]),
        f"{row['length']:.3f}",
        f"{row['checkpoint_ratio']:.3f}",
        f"{row['gain']:+.4f}",
        f"{row['improvement_rate']:.1%}",
    ]
    for key, words in (("length", "episode fraction"), ("score", "score")):
        correlation = data[f"{key}_correlation"]
        words += f": {correlation['rho']:.2f} ({correlation['phases']} phases)"
        assert words in out.replace("\n", " ")


def test_runs_are_pooled(runs, capsys):
    def phases(*paths):
        rows = json.loads(diagnose(capsys, *paths, "--json"))["rows"]
        return [row["phases"] for row in rows]

    alone = [phases(run) for run in runs]
    assert phases(*runs) == [sum(counts) for counts in zip(*alone, strict=True)]


def test_journal_can_be_named_instead_of_its_run(runs, capsys):
    by_file = diagnose(capsys, runs[0] / "journal.jsonl")
    assert by_file == diagnose(capsys, runs[0])


def test_horizon_sets_how_far_ahead_a_gain_looks(runs, capsys):
    near, far = (
        json.loads(diagnose(capsys, runs[0], "--horizon", n, "--json")) for n in (1, 9)
    )
    phases = sum(row["phases"] for row in near["rows"])
    assert near["score_correlation"]["phases"] == phases - 1
    assert far["score_correlation"]["phases"] == phases - 9
    assert "over the next decision." in diagnose(capsys, runs[0], "--horizon", 1)


def test_torn_last_line_is_a_warning(runs, capsys, tmp_path):
    torn = tmp_path / "journal.jsonl"
    torn.write_bytes((runs[0] / "journal.jsonl").read_bytes()[:-7])
    assert main(["diagnose", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "frontier phases" in out
    assert "warning" in err and "torn last line dropped" in err


def test_run_by_the_clock_says_why_its_table_is_empty(tmp_path, capsys):
    wide = choose_method("wide", CurriculumCfg())
    create_curriculum(tmp_path / "journal.jsonl", ["mass"], wide).close()
    rehearsal = RehearsalCfg(method="wide", curriculum=CurriculumCfg(max_phases=5))
    run = Rehearsal.create(rehearsal, paper_catalogue(), tmp_path / "wide")
    list(run.phases())
    run.close()
    out = diagnose(capsys, tmp_path / "wide", tmp_path)
    assert "0 frontier phases of 2 run(s)" in out
    assert "Left out: 5 phase(s) by the clock" in out


def test_no_run_is_refused(capsys):
    assert "name at least one run" in bad(capsys)


def test_typo_is_answered_with_a_suggestion(runs, capsys):
    err = bad(capsys, runs[0].with_name("sed-0"))
    assert "there is no run" in err and f"did you mean {runs[0]}?" in err
    assert "did you mean" not in bad(capsys, "nowhere/at/all")


def test_directory_without_a_journal(tmp_path, capsys):
    assert "there is no journal.jsonl in it" in bad(capsys, tmp_path)


def test_run_named_twice(runs, capsys):
    assert "is named twice" in bad(capsys, runs[0], runs[0] / "journal.jsonl")


@pytest.mark.parametrize("horizon", ["0", "-2"])
def test_bad_horizon(runs, capsys, horizon):
    assert f"horizon is {horizon}" in bad(capsys, runs[0], "--horizon", horizon)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: b"", "empty, or cut off within its first line"),
        (lambda d: b"\x00\xff\n", ":1: not JSON"),
        (lambda d: b'{"rows": []}\n', "no schema version"),
        (lambda d: d.replace(b"\n", b"\ngarbage\n", 1), ":2: not JSON"),
        (lambda d: d.replace(b'"length":0', b'"length":1', 1), "checksum"),
    ],
)
def test_damaged_journal(runs, tmp_path, capsys, damage, message):
    file = tmp_path / "journal.jsonl"
    file.write_bytes(damage((runs[0] / "journal.jsonl").read_bytes()))
    # A sound run beside it does not hide it.
    err = bad(capsys, runs[0], tmp_path)
    assert message in err and str(file) in err


def test_core_install_is_told_which_extra_is_missing(runs, capsys, monkeypatch):
    monkeypatch.delitem(
        sys.modules, "horizon_rl.evaluation.studies.diagnostic", raising=False
    )
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    assert "pip install -c constraints.txt -e '.[train]'" in bad(capsys, runs[0])


def test_page_shows_what_its_commands_print(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    lines = "".join(re.findall(r"```(?:sh|bash)\n(.*?)```", text, re.DOTALL))
    commands = [line for line in lines.splitlines() if line.startswith("horizon ")]
    for command in commands:
        capsys.readouterr()
        assert main(shlex.split(command.split("#")[0])[1:]) == 0
        if command.startswith("horizon diagnose runs/"):
            out = capsys.readouterr().out
            shown = "\n".join(line.rstrip() for line in out.splitlines())
            assert f"```text\n{shown}\n```" in text
    assert any(command.startswith("horizon diagnose") for command in commands)
