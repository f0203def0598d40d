"""`horizon status`, as a user runs it."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from horizon_rl.cli import main
from horizon_rl.curriculum import CurriculumCfg, choose_method
from horizon_rl.domains import paper_catalogue
from horizon_rl.rehearsal import Rehearsal, RehearsalCfg
from horizon_rl.runs.journal import create_curriculum, replay
from run_files import (
    CONTEXT,
    GOOD,
    begin,
    status,
    status_json,
    stop,
    write_metrics,
    write_times,
)

KEYS = {
    *("run", "kind", "method", "start", "seed", "ranks", "standing", "ended"),
    *("resume", "age_s", "is_silent", "budget", "phases", "boundaries", "env_steps"),
    *("unhealthy", "overflow"),
    *("by_action", "difficulty", "frontiers", "last_decision", "proposal"),
    *("progress", "times", "anchor", "checkpoint", "results"),
}


def bad(capsys, *args) -> str:
    """Run a command that must be refused; return its one line of complaint."""
    assert main(["status", *map(str, args)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith("horizon: ")
    return err


@pytest.fixture
def run(tmp_path) -> Path:
    return tmp_path / "run"


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory) -> Path:
    run = tmp_path_factory.mktemp("rehearsed") / "run"
    cfg = RehearsalCfg(method="paper", groups="mass,com", seed=3)
    rehearsal = Rehearsal.create(cfg, paper_catalogue(), run)
    list(rehearsal.phases())
    rehearsal.close()
    return run


def test_finished_rehearsal(rehearsal, capsys):
    out = status(capsys, rehearsal)
    assert f"{rehearsal}: finished, no frontier is left to try" in out
    assert "rehearsal by paper, seed 3" in out
    data, entries = (
        status_json(capsys, rehearsal),
        replay(rehearsal / "journal.jsonl").entries,
    )
    actions = [entry.decision.action for entry in entries]
    for action, spent in data["by_action"].items():
        assert spent["phases"] == actions.count(action)
        assert spent["probe_env_steps"] is None
    assert sum(s["share"] for s in data["by_action"].values()) == pytest.approx(1.0)
    assert data["phases"] == len(entries) and data["boundaries"] > 0
    assert data["checkpoint"]["exists"]
    for key in ("progress", "times", "budget", "proposal", "resume"):
        assert data[key] is None


def test_board_and_end_of_a_rehearsal_say_the_same_of_rollbacks(tmp_path, capsys):
    path = str(tmp_path / "held")
    bold = ["--leap.recovery", "0.95", "--leap.no-weigh-error"]
    assert main(["rehearse", "--seed", "1", *bold, "--run", path]) == 0
    ended = " ".join(capsys.readouterr().out.split())
    words = "undone by rollbacks, with the phases held before them"
    found = re.search(rf"([1-9]\d*% {words})\.", ended)
    assert found
    words = found[1]
    assert re.search(rf"^env steps +{words}", status(capsys, path), re.M)


def test_shipped_run_is_not_called_damaged(capsys):
    out = status(capsys, "core")
    assert "phase-00034, not kept" in out and "missing" not in out


def test_json_has_the_documented_keys(rehearsal, run, capsys):
    write_metrics(stop(run))
    for path in (rehearsal, run):
        data = status_json(capsys, path)
        assert set(data) == KEYS
        assert set(data["frontiers"][0]) == {
            *("name", "groups", "status", "mastered", "candidate", "failed", "rung"),
            *("coverage", "last_level", "last_decision"),
        }
        assert "reason" in data["last_decision"] and "by_action" in data


@pytest.mark.parametrize("width", [80, 120])
def test_screen_holds_it_all(run, capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    curriculum = begin(run, steps=1000)
    write_metrics(run)
    write_times(run)
    lines = status(capsys, run).splitlines()
    curriculum.close()
    assert len(lines) <= 24 and not any("…" in line for line in lines)
    # Paths are not wrapped, to be copied.
    assert all(len(x) <= width for x in lines if str(run.parent) not in x)


def test_open_journal_is_a_running_run(run, capsys):
    curriculum = begin(run)
    write_metrics(run)
    out = status(capsys, run)
    assert f"{run}: running, last line" in out and "Go on with" not in out
    assert "training by paper from base-mlp, seed 7, 2 ranks" in out
    curriculum.close()
    assert status_json(capsys, run)["standing"] == "stopped"


def test_stopped_run_says_how_to_go_on(run, capsys):
    write_metrics(stop(run))
    out = status(capsys, run)
    assert "phase 4 was not judged and runs again" in out
    command = f"torchrun --nproc-per-node 2 -m horizon_rl train --resume {run}"
    assert f"Go on with: {command}\n" in out
    alone = stop(run.with_name("of one"), ranks=1)
    resume = f"horizon train --resume '{alone}'"
    assert status_json(capsys, alone)["resume"] == resume


def test_command_that_goes_on_with_a_rehearsal_does(rehearsal, run, capsys):
    run.mkdir()
    (run / "checkpoints").symlink_to(rehearsal / "checkpoints")
    whole = (rehearsal / "journal.jsonl").read_bytes()
    (run / "journal.jsonl").write_bytes(whole[: whole.rindex(b"\n", 0, -1) + 1])
    command = shlex.split(status_json(capsys, run)["resume"])
    assert main([*command[1:], "--json"]) == 0
    capsys.readouterr()
    assert (run / "journal.jsonl").read_bytes() == whole
    assert status_json(capsys, run)["standing"] == "finished"


@pytest.mark.skipif(sys.platform == "win32", reason="needs locks and SIGKILL")
def test_killed_process_leaves_a_stopped_run(run, capsys):
    code = (
        "import sys, time; from pathlib import Path\n"
        "from horizon_rl.runs.journal import create_curriculum\n"
        "kept = create_curriculum(Path(sys.argv[1]), ['mass'])\n"
        "print('ready', flush=True); time.sleep(86400)"
    )
    run.mkdir()
    command = [sys.executable, "-c", code, str(run / "journal.jsonl")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"ready\n"
        assert status_json(capsys, run)["standing"] == "running"
        process.kill()
    assert status_json(capsys, run)["standing"] == "stopped"


def test_spent_budget_of_steps_is_an_end(run, capsys):
    out = status(capsys, stop(run, steps=500))
    assert f"{run}: finished, budget of 500 env steps spent" in out
    assert "ended: budget of 500 env steps spent" in out
    data = status_json(capsys, run)
    assert data["proposal"] is None and data["resume"] is None
    assert data["budget"]["share"] == 530 / 500
    assert status_json(capsys, stop(run / "b", steps=531))["standing"] == "stopped"


def test_spent_budget_of_minutes_is_an_end(run, capsys):
    write_times(stop(run, minutes=1.0), seconds=14.0)
    assert status_json(capsys, run)["standing"] == "stopped"
    assert "93% of 1 min spent" in status(capsys, run)
    write_times(run, seconds=15.0)
    assert "finished, budget of 1 minutes spent" in status(capsys, run)


def test_run_that_was_given_more_than_its_first_budget(run, capsys):
    curriculum = begin(run, steps=500)
    assert status_json(capsys, run)["standing"] == "running"
    write_metrics(run)
    curriculum.close()
    # Cut off within a phase, which a run that ends by its budget never is.
    out = status(capsys, run)
    assert "stopped" in out and "add --steps or --minutes" in out


def test_run_before_its_first_verdict(run, capsys):
    out = status(capsys, stop(run, ()))
    assert "phase 0: baseline: learn" in out and "verdicts" not in out


def test_journal_of_somebodys_own_loop(run, capsys):
    run.mkdir()
    create_curriculum(run / "journal.jsonl", ["wind"]).close()
    out = status(capsys, run)
    assert "a curriculum in a training loop of its own" in out and "wind" in out
    data = status_json(capsys, run)
    assert data["kind"] == "other" and data["resume"] is None
    assert data["frontiers"][0]["coverage"] == {"wind": None}


def test_run_by_the_clock_without_groups(run, capsys):
    run.mkdir()
    base = choose_method("base", CurriculumCfg(max_phases=1))
    curriculum = create_curriculum(run / "journal.jsonl", [], base, CONTEXT)
    curriculum.tell(GOOD)
    curriculum.close()
    assert "finished, budget of 1 phase spent" in status(capsys, run)


def test_torn_journal_is_a_warning(run, capsys):
    journal = stop(run) / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-7])
    assert main(["status", str(run), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["phases"] == 3
    assert err.count("\n") == 1 and "warning" in err and "torn last line" in err


def test_line_being_written_by_a_live_run_is_no_warning(run, capsys):
    curriculum = begin(run)
    with open(run / "journal.jsonl", "ab") as file:
        file.write(b'{"proposal":')
    assert status_json(capsys, run)["phases"] == 4
    curriculum.close()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: b"", "empty, or cut off within its first line"),
        (lambda d: d.replace(b"\n", b"\ngarbage\n", 1), ":2: not JSON"),
        (lambda d: d.replace(b'"schema":4', b'"schema":7', 1), "schema 7"),
        (lambda d: d.replace(b'"length":0', b'"length":1', 1), "checksum"),
    ],
)
def test_damaged_journal(run, capsys, damage, message):
    journal = stop(run) / "journal.jsonl"
    journal.write_bytes(damage(journal.read_bytes()))
    err = bad(capsys, run)
    assert message in err and str(journal) in err


def test_catalogue_of_another_make(run, capsys):
    run.mkdir()
    context = {**CONTEXT, "catalogue": {"rows": []}}
    create_curriculum(run / "journal.jsonl", ["mass"], None, context).close()
    assert "journal.jsonl:1: Catalogue.rows: unknown field 'rows'" in bad(capsys, run)


def test_path_that_holds_no_run(run, capsys):
    stop(run)
    err = bad(capsys, run.with_name("rum"))
    assert "there is no run" in err and f"did you mean {run}?" in err
    assert "there is no journal.jsonl in it" in bad(capsys, run / "checkpoints")


def test_journal_can_be_named_instead_of_its_run(run, capsys):
    stop(run)
    assert status(capsys, run / "journal.jsonl") == status(capsys, run)


def test_without_a_run_the_one_last_written_to_is_shown(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    err = bad(capsys)
    assert "no run under logs/" in err and "training run or rehearsal" in err
    old, new = (stop(tmp_path / "logs" / name) for name in ("train/b", "rehearsal/a"))
    os.utime(old / "journal.jsonl", (1.0, 1.0))
    os.utime(new / "journal.jsonl", (2.0, 2.0))
    assert status_json(capsys)["run"] == "logs/rehearsal/a"
    write_metrics(old)
    assert status_json(capsys)["run"] == "logs/train/b"


def test_core_install_is_enough(run):
    stop(run)
    heavy = ("torch", "mujoco", "warp", "rsl_rl", "scipy", "matplotlib")
    code = (
        "import sys; from horizon_rl.cli import main\n"
        f"assert main(['status', {str(run)!r}]) == 0\n"
        f"print(*(name for name in {heavy} if name in sys.modules), sep=',')"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\n\n") and "stopped" in done.stdout


@pytest.mark.parametrize("width", [50, 60, 80])
def test_words_and_numbers_stay_whole_on_a_narrow_terminal(width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["status", "core-quiet"]) == 0
    head, board = capsys.readouterr().out.split("Frontiers after")
    assert max(len(x) for x in head.splitlines() if "/" not in x) <= width
    board = board.split("\nphase ")[0]
    assert "…" not in board and max(map(len, board.splitlines())) <= width
    words = board.split()
    for word in (
        "actuation",
        "disturbance",
        "coverage",
        "mastered",
        "pending",
        "0.540",
    ):
        assert word in words
