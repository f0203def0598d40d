"""A rehearsal killed at random moments ends as if nothing had happened."""

import os
import random
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from horizon_rl.curriculum import CurriculumCfg, LeapCfg
from horizon_rl.domains import paper_catalogue
from horizon_rl.rehearsal import Rehearsal, RehearsalCfg, run_to_end
from horizon_rl.runs.journal import replay
from horizon_rl.runs.paths import JOURNAL

KILLS = 30
ACTIONS = {
    # Of these, holds matter most: a rollback goes past them, to the commit before.
    "horizon": {"commit", "rollback", "hold"},
    "paper": {"commit", "rollback"},
}
PAPER = paper_catalogue()


def run_in_child(cfg: RehearsalCfg, run: Path) -> int:
    """Start or resume the rehearsal in a forked process; return its id."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        exists = (run / JOURNAL).exists()
        rehearsal = (
            Rehearsal.resume(run) if exists else Rehearsal.create(cfg, PAPER, run)
        )
        for _ in rehearsal.phases():
            pass
        status = 0
    finally:
        os._exit(status)  # No clean-up: this process never leaves the test.


def wait(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kill_at(pid: int, journal: Path, num_bytes: int, jitter_s: float) -> int:
    """Kill a process once its journal has grown to `num_bytes`; return its status."""
    while not (journal.exists() and journal.stat().st_size >= num_bytes):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(1e-4)
    time.sleep(jitter_s)
    os.kill(pid, signal.SIGKILL)
    return wait(pid)


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
@pytest.mark.parametrize("method", ACTIONS)
def test_killed_at_random_moments_and_resumed_equals_uninterrupted(method, tmp_path):
    # In a process of its own: to fork one that has other tests' threads may hang.
    command = [sys.executable, __file__, method, str(tmp_path), str(KILLS)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def kill_and_resume(method: str, tmp_path: Path, kills: int = KILLS) -> None:
    """Kill rehearsals until there were enough kills, comparing all the way."""
    warnings.simplefilter("ignore")  # Torn lines are what this is about.
    rng = random.Random(0)
    cfg = RehearsalCfg(
        method=method,
        groups="mass,com",
        seed=3,
        curriculum=CurriculumCfg(max_phases=40),
        leap=LeapCfg(recovery=0.95),
    )
    expected = [e.decision for e in run_to_end(cfg, PAPER).curriculum.entries]
    assert {d.action for d in expected} == ACTIONS[method]
    assert wait(run_in_child(cfg, tmp_path / "whole")) == 0
    journal_bytes = (tmp_path / "whole" / JOURNAL).read_bytes()
    whole = len(journal_bytes)

    hits: list[int] = []
    while sum(hits) < kills or max(hits) < 2:
        assert len(hits) < 10 * kills, "hardly a kill came in time"
        run = tmp_path / f"run-{len(hits)}"
        hits.append(0)
        status = -signal.SIGKILL
        while status != 0:
            journal = run / JOURNAL
            size = journal.stat().st_size if journal.exists() else 0
            # Somewhere within the next part of the run: before, in or after a write.
            target = rng.randrange(size + 1, size + whole // 4)
            pid = run_in_child(cfg, run)
            status = kill_at(pid, journal, target, rng.uniform(0.0, 1e-3))
            assert status in (0, -signal.SIGKILL), "a resumed run failed by itself"
            hits[-1] += status == -signal.SIGKILL
            if journal.exists():
                so_far = [e.decision for e in replay(journal).entries]
                assert so_far == expected[: len(so_far)]
        # Evidence and checkpoints' digests too, to the bit.
        assert (run / JOURNAL).read_bytes() == journal_bytes


if __name__ == "__main__":
    kill_and_resume(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
