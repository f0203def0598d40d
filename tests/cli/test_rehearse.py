"""`horizon rehearse`, as a user runs it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from horizon_rl.cli import main
from horizon_rl.curriculum.method import describe
from horizon_rl.rehearsal.compare import COMPARED
from horizon_rl.runs.journal import replay
from waiting import wait_for

COMMAND = [sys.executable, "-m", "horizon_rl", "rehearse"]


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory):
    """A rehearsal that no test changes."""
    path = tmp_path_factory.mktemp("rehearsed") / "run"
    assert main(["rehearse", "--run", str(path), "--json"]) == 0
    return path


@pytest.fixture
def finished(rehearsed, run):
    """A copy of it."""
    return shutil.copytree(rehearsed, run)


def test_summary_figure_and_journal_are_there(run, capsys):
    assert main(["rehearse", "--method", "paper", "--run", str(run)]) == 0
    out = capsys.readouterr().out
    assert "…" not in out and max(map(len, out.splitlines())) <= 200
    assert " committed, " in out and "boundary" in out and str(run) in out
    assert (run / "frontiers.png").read_bytes().startswith(b"\x89PNG")
    assert (run / "frontiers.svg").read_text().lstrip().startswith("<?xml")
    assert len(replay(run / "journal.jsonl").entries) > 20


@pytest.mark.parametrize("method", ["adr", "scalar-adr", "doraemon", "plr"])
def test_peers_have_journal_figure_status_and_report(method, run, tmp_path, capsys):
    args = ["--method", method, "--adr.episodes", "16", "--curriculum.max-phases", "12"]
    assert main(["rehearse", *args, "--run", str(run)]) == 0
    out = capsys.readouterr().out
    assert "12 committed" in out
    # As `horizon train` does, it says what follows from the settings.
    assert out.startswith(describe(replay(run / "journal.jsonl").header.make_method()))
    assert (run / "frontiers.png").exists()
    assert main(["status", str(run)]) == 0
    out = capsys.readouterr().out
    assert f"rehearsal by {method}" in out and "kept" in out
    assert main(["report", str(run), "--out", str(tmp_path / "page")]) == 0
    assert method in (tmp_path / "page" / "index.html").read_text()


@pytest.mark.parametrize(
    ("method", "phases", "message"),
    [
        ("adr", 3, "before one buffer of ADR is full"),
        ("scalar-adr", 1, "before the level of scalar ADR can change"),
        ("doraemon", 1, "before one update of DORAEMON"),
        ("plr", 1, "before PLR trains"),
    ],
)
def test_budget_too_small_for_a_peer_is_refused(method, phases, message, run, capsys):
    few = ["--curriculum.max-phases", str(phases)]
    for args in (
        ["--method", method, "--run", str(run)],
        ["--compare", "--methods", method],
    ):
        err = bad(capsys, *args, *few)
        assert message in err
        # What it accepts is what a rehearsal has too.
        assert "Accepted: a larger budget of env steps or phases" in err
        assert not re.search("--steps|worlds|shorter", err)
    assert not (run / "journal.jsonl").exists()


def test_json_has_the_documented_fields(run, capsys):
    args = ["rehearse", "--json", "--seed", "3", "--groups", "mass,com"]
    assert main([*args, "--run", str(run)]) == 0
    summary = json.loads(capsys.readouterr().out)
    counts = [summary[k] for k in ("phases", "commits", "rollbacks", "boundaries")]
    assert all(isinstance(count, int) for count in counts)
    assert set(summary["coverage"]) == {"mass", "com"}
    assert len(summary["decisions"]) == summary["phases"]
    assert {
        "phase",
        "kind",
        "frontier",
        "candidate",
        "action",
        "verdict",
        "reason",
    } <= (set(summary["decisions"][0]))
    assert json.loads((run / "summary.json").read_text()) == summary


def test_same_seed_gives_the_same_journal_and_figure(tmp_path, capsys):
    for name in ("a", "b"):
        assert main(["rehearse", "--seed", "5", "--run", str(tmp_path / name)]) == 0
    capsys.readouterr()
    for file in ("journal.jsonl", "summary.json", "frontiers.png", "frontiers.svg"):
        assert (tmp_path / "a" / file).read_bytes() == (
            tmp_path / "b" / file
        ).read_bytes()


def test_settings_reach_the_curriculum(run, capsys):
    args = ["--curriculum.alpha", "0.2", "--curriculum.max-rungs", "1", "--json"]
    assert main(["rehearse", "--run", str(run), *args]) == 0
    cfg = replay(run / "journal.jsonl").header.curriculum
    assert (cfg.alpha, cfg.max_rungs) == (0.2, 1)


def test_compare_prints_all_methods_on_80_columns(capsys, monkeypatch):
    few = ["--seeds", "1", "--curriculum.max-phases", "12"]
    assert main(["rehearse", "--compare", *few]) == 0
    out = capsys.readouterr().out
    assert "…" not in out and max(map(len, out.splitlines())) <= 80
    for method in COMPARED:
        assert out.count(method) >= 3
    monkeypatch.setenv("COLUMNS", "60")
    some = ["--methods", "plr,fixed"]
    assert main(["rehearse", "--compare", *few, *some]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 60
    assert out.count("learner  ") == 2 and out.count("fixed") == 6
    assert main(["rehearse", "--compare", *few, *some, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["method"] for row in rows] == ["plr", "fixed"] * 3


def test_killed_process_resumes_to_the_same_end(rehearsed, run, capsys):
    command = [*COMMAND, "--run", str(run), "--groups", "core"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    wait_for((run / "journal.jsonl").exists)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert main(["rehearse", "--run", str(run), "--resume", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(
        (rehearsed / "summary.json").read_text()
    )


def test_finished_run_resumes_to_its_own_summary(run, capsys):
    assert main(["rehearse", "--run", str(run), "--json"]) == 0
    first = capsys.readouterr().out
    assert main(["rehearse", "--run", str(run), "--json", "--resume"]) == 0
    assert capsys.readouterr().out == first


def bad(capsys, *args):
    """Run a command that must be refused; return its one line of complaint."""
    assert main(["rehearse", *args]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith("horizon: ")
    return err


def test_run_directory_that_holds_a_run_is_left_alone(finished, capsys):
    before = {p: p.read_bytes() for p in finished.rglob("*") if p.is_file()}
    assert "already holds a run" in bad(capsys, "--run", str(finished))
    assert {p: p.read_bytes() for p in finished.rglob("*") if p.is_file()} == before


def test_unwritable_run_directory(tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    err = bad(capsys, "--run", str(tmp_path / "file" / "run"))
    assert "cannot write to run directory" in err


def test_directory_with_other_things_in_it(tmp_path, capsys):
    (tmp_path / "summary.json").write_text("mine")
    assert "is not empty" in bad(capsys, "--run", str(tmp_path))
    assert (tmp_path / "summary.json").read_text() == "mine"


def test_catalogue_cannot_change_on_resume(run, capsys):
    assert main(["rehearse", "--run", str(run), "--json"]) == 0
    capsys.readouterr()
    err = bad(capsys, "--resume", "--run", str(run), "--catalogue", "other.toml")
    assert "leave out --catalogue" in err


def test_catalogue_without_the_core_says_what_to_name(tmp_path, capsys):
    file = tmp_path / "mine.toml"
    file.write_text("[groups.wind.parameters.speed]\nbaseline=[0,1]\nlimit=[0,4]\n")
    assert "unknown group 'actuation'. Accepted: wind" in bad(
        capsys, "--catalogue", str(file)
    )


def test_terminal_without_unicode_gets_no_traceback(run):
    command = [*COMMAND, "--run", str(run), "--groups", "mass"]
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii"}
    result = subprocess.run(command, capture_output=True, text=True, env=ascii_only)
    assert result.returncode == 0 and "Traceback" not in result.stderr


def test_resume_needs_a_run(tmp_path, capsys):
    assert "--resume needs --run" in bad(capsys, "--resume")
    assert "holds no run" in bad(capsys, "--resume", "--run", str(tmp_path))


def test_resume_refuses_other_settings(run, capsys):
    assert main(["rehearse", "--run", str(run), "--json", "--seed", "2"]) == 0
    capsys.readouterr()
    args = ("--resume", "--run", str(run), "--curriculum.alpha", "0.3", "--seed", "2")
    err = bad(capsys, *args)
    assert "leave out --curriculum.alpha (is 0.4)" in err and "--seed" not in err


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: d[:100], "cut off within its first line"),
        (lambda d: d.replace(b"\n", b"\ngarbage\n", 1), ":2: not JSON"),
        (lambda d: re.sub(rb'"schema":\d', b'"schema":7', d, count=1), "schema 7"),
        (lambda d: d.replace(b'"length":0', b'"length":1', 1), "checksum"),
    ],
)
def test_damaged_journal(finished, capsys, damage, message):
    journal = finished / "journal.jsonl"
    journal.write_bytes(damage(journal.read_bytes()))
    before = journal.read_bytes()
    assert message in bad(capsys, "--resume", "--run", str(finished))
    assert journal.read_bytes() == before


def test_torn_journal_goes_on_with_a_warning(finished, capsys):
    journal, summary = finished / "journal.jsonl", finished / "summary.json"
    expected = json.loads(summary.read_text())
    journal.write_bytes(journal.read_bytes()[:-7])
    assert main(["rehearse", "--resume", "--run", str(finished), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == expected
    assert "warning" in err and "torn last line dropped" in err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--groups", "mass,con"), "unknown group 'con': did you mean"),
        (("--groups", "mass,mass"), "name each once"),
        (("--curriculum.alpha", "1.5"), "alpha is 1.5; accepted: 0.01..0.99"),
        (("--curriculum.grow", "0.5"), "grow is 0.5; accepted: 1..1e+06"),
        (("--learner.reach", "0"), "reach is 0; accepted: 1e-09..10"),
        (("--seed", "-1"), "seed is -1"),
        (("--curriculum.grow", "inf"), "grow is inf"),
        (("--learner.reach", "nan"), "reach is nan"),
        (("--pace", "nan"), "--pace is nan"),
        (("--compare", "--seeds", "0"), "--seeds is 0"),
        (("--compare", "--resume"), "--compare keeps no run"),
        (("--compare", "--methods", "horizon,adrr"), "unknown method 'adrr'"),
    ],
)
def test_bad_settings(args, message, capsys, run):
    extra = () if "--compare" in args else ("--run", str(run))
    assert message in bad(capsys, *args, *extra)
    assert not (run / "journal.jsonl").exists()


def test_settings_that_the_method_does_not_read_are_said(run, capsys):
    args = ["--method", "fixed", "--leap.recovery", "0.3", "--curriculum.max-phases=2"]
    assert main(["rehearse", *args, "--run", str(run)]) == 0
    assert "method fixed does not read --leap.recovery\n" in capsys.readouterr().err
