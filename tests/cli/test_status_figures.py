"""The figures of `horizon status`, worked out by hand."""

import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from horizon_rl.cli import main
from horizon_rl.domains import paper_catalogue
from horizon_rl.runs.journal import create_curriculum
from horizon_rl.runs.lines import to_line
from horizon_rl.support.records import encode
from run_files import (
    GOOD,
    PHASES,
    begin,
    status,
    status_json,
    stop,
    write_metrics,
    write_times,
)


@pytest.fixture
def run(tmp_path) -> Path:
    return tmp_path / "run"


def test_steps_are_told_by_verdict_and_probes_apart(run, capsys):
    data = status_json(capsys, stop(run))
    assert data["env_steps"] == 530
    assert data["by_action"] == {
        "commit": {
            **{"phases": 2, "env_steps": 300, "share": 300 / 530},
            "probe_env_steps": 60,
        },
        "rollback": {
            **{"phases": 1, "env_steps": 80, "share": 80 / 530},
            "probe_env_steps": 0,
        },
        "hold": {
            **{"phases": 1, "env_steps": 150, "share": 150 / 530},
            "probe_env_steps": 30,
        },
        "retreat": {"phases": 0, "env_steps": 0, "share": 0.0, "probe_env_steps": 0},
    }
    rows = [line.split() for line in status(capsys, run).splitlines()]
    assert ["committed", "2", "300", "57%", "20%"] in rows
    assert ["rolled", "back", "1", "80", "15%", "0%"] in rows
    assert ["held", "1", "150", "28%", "20%"] in rows
    assert ["all", "4", "530", "100%", "17%"] in rows


def test_frontiers_carry_their_last_verdict_with_its_numbers(run, capsys):
    mass, com = status_json(capsys, stop(run))["frontiers"]
    assert (mass["status"], mass["failed"]) == ("recovery", 0.05)
    assert mass["candidate"] == pytest.approx(0.02)
    assert mass["last_decision"]["action"] == "rollback"
    assert "error 0.9 (at most 0.5)" in mass["last_decision"]["reason"]
    assert (com["mastered"], com["candidate"]) == (0.05, None)
    assert com["coverage"]["com"] == paper_catalogue().coverage({"com": 0.05})["com"]


def test_progress_of_the_phase_under_way(run, capsys):
    curriculum = begin(run)
    assert "phase 4     no iteration yet" in status(capsys, run)
    write_metrics(run, phase=3, count=3, first=9)  # Judged already.
    assert status_json(capsys, run)["progress"] is None
    write_metrics(run)
    assert status_json(capsys, run)["progress"] == {
        **{"iterations": 2, "max_iterations": 3, "env_steps": 80},
        **{"steps_per_s": pytest.approx(80.0), "reward": 0.04},
        **{"episode_length": 0.9, "tracking_error": 0.31},
    }
    shown = "phase 4     iteration 2 of 3, 80 steps/s, length 90%, error 0.31 m/s"
    assert shown in status(capsys, run)
    # Longer than the settings say: how long it will be is not known.
    write_metrics(run, count=2, first=14)
    assert "iteration 4, 80" in status(capsys, run)
    curriculum.close()


def test_iterations_of_a_phase_not_yet_in_the_journal_read_do_not_count(run, capsys):
    stop(run)
    write_metrics(run, phase=5, count=2, first=15)
    assert status_json(capsys, run)["progress"] is None


def test_silent_run_may_hang(run, capsys, monkeypatch):
    now = time.time()  # And it stays so, however long the tables take.
    monkeypatch.setattr("horizon_rl.runs.read.time", SimpleNamespace(time=lambda: now))
    curriculum = begin(run)
    write_metrics(run)
    write_times(run, seconds=10.0)

    def age(seconds: float) -> str:
        when = now - seconds
        for file in run.glob("*.jsonl"):
            os.utime(file, (when, when))
        return status(capsys, run)

    assert "last line 30 s ago\n" in age(30.0)
    assert "last line 10.0 min ago: it may hang" in age(600.0)
    shutil.rmtree(run / "checkpoints")  # Kept elsewhere, say.
    assert "last line 10.0 min ago: it may hang" in age(600.0)
    write_times(run, seconds=1000.0)  # Probes and settling take 300 of them.
    assert "may hang" not in age(600.0)
    curriculum.close()
    assert "may hang" not in age(9999.0)


def test_time_is_split(run, capsys):
    write_times(stop(run))
    times = status_json(capsys, run)["times"]
    assert times["phases"] == 4 and times["total_s"] == pytest.approx(40.0)
    assert times["probe_s"] == pytest.approx(8.0)
    assert times["settle_share"] == pytest.approx(0.1)
    shown = "time        40 s: training 70%, probes 20%, settling 10%"
    assert shown in status(capsys, run)


def test_torn_and_odd_lines_of_the_logs_are_left_out(run, capsys):
    write_times(stop(run), num_phases=2)
    with open(run / "times.jsonl", "ab") as file:
        odd = {"probe_s": 1.0, "settle_s": 1.0}
        for line in (
            {"phase": 2, "train_s": float("nan"), **odd},
            {"phase": 3, **odd},
            ["phase", 3],
        ):
            file.write(json.dumps(line).encode() + b"\n")
        file.write(to_line({"phase": 9, "train_s": 1.0, **odd}))  # Never judged.
        file.write(b'\xff\n{"phase":3,"trai')
    write_metrics(run)
    with open(run / "metrics.jsonl", "ab") as file:
        file.write(b'{"phase":4,"number":14,"env_st')
    assert main(["status", str(run)]) == 0
    out, err = capsys.readouterr()
    assert "20 s (of 2 phases on record): training" in out
    assert "times.jsonl: 5 damaged line(s) left out" in err
    assert "metrics.jsonl: 1 damaged line(s) left out" in err
    assert main(["status", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["progress"]["iterations"] == 2


def test_only_the_end_of_long_metrics_is_needed(run, capsys):
    stop(run)
    write_metrics(run)
    file = run / "metrics.jsonl"
    first, *others = file.read_text().splitlines()
    figures = {f"figure {i}": 0.5 for i in range(8000)}
    file.write_text(
        "\n".join((json.dumps({**json.loads(first), **figures}), *others, ""))
    )
    assert (run / "metrics.jsonl").stat().st_size > 1 << 16
    assert status_json(capsys, run)["progress"]["iterations"] == 2


def test_drift_at_level_0(run, capsys):
    anchor = status_json(capsys, stop(run))["anchor"]
    assert (anchor["first_phase"], anchor["last_phase"]) == (1, 3)
    shown = "at level 0  error 0.150 -> 0.250 m/s, return 11 -> 10 (first, last commit)"
    assert shown in status(capsys, run)
    once = status(capsys, stop(run / "once", PHASES[:2]))
    assert "error 0.150 m/s at the first commit" in once


def test_checkpoint_and_whether_it_is_there(run, capsys):
    stop(run)
    folder = run / "checkpoints" / "phase-00003"
    data = status_json(capsys, run)["checkpoint"]
    assert data == {"path": str(folder), "exists": True}
    folder.rmdir()
    assert f"checkpoint  {folder} (missing" in status(capsys, run)
    data = status_json(capsys, stop(run / "new", ()))["checkpoint"]
    initial = run / "new" / "checkpoints" / "initial"
    assert data == {"path": str(initial), "exists": False}


def test_real_training_writes_what_is_read(run, capsys):
    pytest.importorskip("torch")
    from horizon_rl.training.context import Context
    from horizon_rl.training.presets import preset_cfg

    cfg = preset_cfg("smoke", "mlp")
    context = Context(
        train=cfg,
        catalogue=paper_catalogue(),
        ranks=3,
        initial="0" * 64,
        start="from scratch",
    )
    run.mkdir()
    curriculum = create_curriculum(
        run / "journal.jsonl",
        ["mass"],
        cfg.make_method(context.catalogue),
        encode(context),
    )
    trained = 2 * 3 * cfg.steps_per_iteration
    curriculum.tell(replace(GOOD, iterations=2, env_steps=trained + 11))
    curriculum.close()
    data = status_json(capsys, run)
    assert data["by_action"]["commit"]["probe_env_steps"] == 11
    assert (data["method"], data["seed"]) == (cfg.method, cfg.seed)
    assert data["budget"]["steps"] == cfg.steps
    assert data["start"] == "from scratch"
    assert data["resume"] is None, "the checkpoint that its journal tells of is gone"
    (run / "checkpoints" / "initial").mkdir(parents=True)
    write_times(run, 1)
    write_metrics(run, phase=0, first=1)
    assert status_json(capsys, run)["resume"].startswith(
        "torchrun --nproc-per-node 3 -m horizon_rl train --resume "
    )
