"""Worlds whose physics breaks: failures, and counted wherever people look."""

import json

import mujoco
import numpy as np
import pytest
from small_runs import WORLDS, create, finish, read_evidence, tiny

from horizon_rl.cli import main
from horizon_rl.curriculum import Entry
from horizon_rl.physics import CpuBackend
from horizon_rl.physics.cpu import FULL
from horizon_rl.show.training_board import TrainingBoard, verdict_line


@pytest.fixture
def break_worlds(monkeypatch):
    """Break the first worlds in every step from now on; probes have other worlds."""

    def broken(count: int, num_worlds: int) -> None:
        step = CpuBackend.step

        def break_then_step(self, targets):
            if self.num_worlds == num_worlds:
                self._qvel[:count] = np.nan
            step(self, targets)

        monkeypatch.setattr(CpuBackend, "step", break_then_step)

    return broken


def test_broken_worlds_raise_the_error_and_are_counted(tmp_path, break_worlds, capsys):
    cfg = tiny(max_phases=1)
    (whole,) = finish(create(cfg, tmp_path / "whole"))
    break_worlds(2, WORLDS)
    run = create(cfg, tmp_path / "broken")
    board, shown = TrainingBoard(run), ""
    *iterations, entry = run.events()
    for iteration in iterations:
        board.add(iteration)
        shown = board.figures()
    run.close()
    assert isinstance(entry, Entry)
    healthy, broken = whole.evidence, entry.evidence
    assert healthy.length and healthy.tracking_error
    assert broken.length and broken.tracking_error
    assert healthy.unhealthy == 0 and "physics" not in verdict_line(whole)
    # Two worlds break in each of 4 x 5 steps: an episode each.
    assert broken.unhealthy == 40
    assert broken.length < healthy.length
    assert broken.tracking_error > healthy.tracking_error
    assert "physics broke in 40 episodes" in verdict_line(entry)
    assert "physics broke in 40 episodes" in shown
    lines = (run.path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["unhealthy"] for line in lines] == [10, 20, 30, 40]
    assert '"unhealthy":40' in (run.path / "journal.jsonl").read_text()
    assert main(["status", str(run.path)]) == 0
    assert "physics broke in 40 episodes" in capsys.readouterr().out


def test_contacts_that_do_not_fit_are_counted_in_training_and_in_probes(
    tmp_path, monkeypatch, capsys
):
    step = CpuBackend.step

    def overflow_and_step(self, targets):
        self._warning[:1, FULL, 1] = 1
        step(self, targets)

    monkeypatch.setattr(CpuBackend, "step", overflow_and_step)
    run = create(tiny(max_phases=1), tmp_path)
    board, shown = TrainingBoard(run), ""
    *iterations, entry = run.events()
    for iteration in iterations:
        board.add(iteration)
        shown = board.figures()
    run.close()
    assert isinstance(entry, Entry)
    lines = (run.path / "metrics.jsonl").read_text().splitlines()
    # One world in each of 4 x 5 steps; then one in every step of the probe.
    assert [json.loads(line)["overflow"] for line in lines] == [5, 10, 15, 20]
    assert "contacts did not fit in 20 steps" in shown
    assert entry.evidence.overflow == 20 + run.worlds.max_length
    words = f"contacts did not fit in {entry.evidence.overflow} steps"
    assert words in verdict_line(entry)
    assert f'"overflow":{entry.evidence.overflow}' in run.directory.journal.read_text()
    assert main(["status", str(run.path)]) == 0
    assert words in capsys.readouterr().out


def test_broken_worlds_leave_no_log_in_the_users_folder(
    tmp_path, monkeypatch, break_worlds, capfd
):
    # In a process that has no handler of its own yet.
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(None)
    monkeypatch.chdir(tmp_path)
    break_worlds(2, WORLDS)
    finish(create(tiny(max_phases=1), tmp_path / "run"))
    assert [file.name for file in tmp_path.iterdir()] == ["run"]
    assert "unstable" not in capfd.readouterr().err
    mujoco.set_mju_user_warning(before)


def test_broken_probes_fail_gate_c_and_are_counted(tmp_path, break_worlds):
    cfg = tiny(max_phases=1)
    break_worlds(cfg.num_probed, cfg.num_probed)
    (entry,) = finish(create(cfg, tmp_path))
    evidence = entry.evidence
    assert evidence.anchor_error == pytest.approx(np.sqrt(2.0))
    assert evidence.unhealthy == len(read_evidence(tmp_path, 0)["anchor_error"]) + len(
        read_evidence(tmp_path, 0)["candidate_error"]
    )
