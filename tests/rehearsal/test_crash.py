"""A rehearsal killed at 200 random moments ends as if nothing had happened."""

import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path

import pytest

from horizon_rl.curriculum import replay
from horizon_rl.domains import paper_catalogue
from horizon_rl.rehearsal import JOURNAL, Rehearsal, RehearsalCfg, run_to_end

KILLS = 200
PAPER = paper_catalogue()


def run_in_child(cfg: RehearsalCfg, run: Path) -> int:
    """Start or resume the rehearsal in a forked process; return its id."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        warnings.simplefilter("ignore")
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


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
@pytest.mark.filterwarnings("ignore:.*torn last line")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_killed_at_random_moments_and_resumed_equals_uninterrupted(tmp_path):
    rng = random.Random(0)
    cfg = RehearsalCfg(groups="full")
    expected = [e.decision for e in run_to_end(cfg, PAPER).curriculum.entries]

    began = time.perf_counter()
    assert wait(run_in_child(cfg, tmp_path / "whole")) == 0
    duration = time.perf_counter() - began

    kills, interrupted, number = 0, 0, 0
    while kills < KILLS:
        run = tmp_path / f"run-{number}"
        number += 1
        while True:
            pid = run_in_child(cfg, run)
            # Mostly short, so that one run is hit many times on its way.
            time.sleep(duration * rng.uniform(0.0, 0.3))
            os.kill(pid, signal.SIGKILL)
            kills += 1
            status = wait(pid)
            interrupted += status == -signal.SIGKILL
            if (run / JOURNAL).exists():
                so_far = [e.decision for e in replay(run / JOURNAL).entries]
                assert so_far == expected[: len(so_far)]
            if status == 0 or kills >= KILLS:
                break
            assert status == -signal.SIGKILL, "a resumed run failed by itself"
        assert wait(run_in_child(cfg, run)) == 0
        assert [e.decision for e in replay(run / JOURNAL).entries] == expected
    assert interrupted > KILLS // 2, f"only {interrupted} of {kills} kills hit a run"
