"""A rehearsal killed at random moments ends as if nothing had happened."""

import json
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from horizon_rl.curriculum import AdrCfg, CurriculumCfg, Decision, LeapCfg
from horizon_rl.domains import paper_catalogue
from horizon_rl.rehearsal import Rehearsal, RehearsalCfg
from horizon_rl.runs.journal import replay
from horizon_rl.runs.paths import JOURNAL, TIMES

KILLS = 30
PATIENCE_S = 60.0
"""A rehearsal that writes nothing for this long hangs: a phase takes milliseconds."""
ACTIONS = {
    # Of these, holds matter most: a rollback goes past them, to the commit before.
    "horizon": {"commit", "rollback", "hold"},
    "paper": {"commit", "rollback"},
    # Peers keep every phase: once resumed, they need their bounds or buffer again.
    "adr": {"commit"},
    "scalar-adr": {"commit"},
    "plr": {"commit"},
}
NUM_PHASES = dict.fromkeys(ACTIONS, 10) | {"horizon": 40, "paper": 40}
"""Of a rehearsal; the peers' phases take longer, as every episode is on record."""
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


def kill_at(pid: int, file: Path, num_bytes: int, jitter_s: float) -> int:
    """Kill a process once a file has grown to `num_bytes`; return its status."""
    began, size = time.monotonic(), -1
    while size < num_bytes:
        before, size = size, file.stat().st_size if file.exists() else -1
        if size > before:
            began = time.monotonic()
            continue
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() - began > PATIENCE_S:
            os.kill(pid, signal.SIGKILL)
            wait(pid)
            raise TimeoutError(f"{file} has stopped growing")
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
    runs = [KilledRun(**json.loads(line)) for line in done.stdout.splitlines()]
    assert not any(run.problem for run in runs), runs
    assert sum(run.kills for run in runs) >= KILLS
    assert max(run.kills for run in runs) > 1


class KilledRun(NamedTuple):
    """A rehearsal that was killed and resumed until it ended."""

    kills: int
    starts: int
    """Kills before it had written its first line."""
    problem: str
    """In what it differs from one that was never killed."""


def kill_and_resume(method: str, folder: Path, kills: int) -> Iterator[KilledRun]:
    """Kill rehearsals until there were enough kills, comparing all the way."""
    warnings.simplefilter("ignore")  # Torn lines are what this is about.
    rng = random.Random(0)
    cfg = RehearsalCfg(
        method=method,
        groups="mass,com",
        seed=3,
        curriculum=CurriculumCfg(max_phases=NUM_PHASES[method]),
        leap=LeapCfg(recovery=0.95, weigh_error=False),
        adr=AdrCfg(episodes=16, step=0.1),
    )
    entries = list(Rehearsal.in_memory(cfg, PAPER).phases())
    expected = [entry.decision for entry in entries]
    assert {d.action for d in expected} == ACTIONS[method]
    assert len({e.proposal.candidate for e in entries}) > 1, "levels never changed"
    whole = folder / "whole"
    assert wait(run_in_child(cfg, whole)) == 0
    whole_bytes = (whole / JOURNAL).stat().st_size

    runs: list[KilledRun] = []
    while sum(run.kills for run in runs) < kills or max(run.kills for run in runs) < 2:
        assert len(runs) < 10 * kills, "hardly a kill came in time"
        run, hits, starts = folder / f"run-{len(runs)}", 0, 0
        journal, status, problem = run / JOURNAL, -signal.SIGKILL, ""
        at_start = len(runs) % 2 == 0  # Every other one is killed as it begins, too.
        while status == -signal.SIGKILL and not problem:
            size = journal.stat().st_size if journal.exists() else 0
            # Somewhere within the next part of the run: before, in or after a write.
            target = rng.randrange(size + 1, size + whole_bytes // 4)
            watched = (run, 0) if at_start else (journal, target)
            pid = run_in_child(cfg, run)
            status = kill_at(pid, *watched, rng.uniform(0.0, 1e-3))
            at_start = False
            hits += status == -signal.SIGKILL
            starts += status == -signal.SIGKILL and not journal.exists()
            problem = _difference(run, expected)
        if status not in (0, -signal.SIGKILL):
            problem = "a resumed run failed by itself"
        elif not problem and _contents(run) != _contents(whole):
            problem = "another file"
        runs.append(KilledRun(hits, starts, problem))
        yield runs[-1]


def _difference(run: Path, expected: list[Decision]) -> str:
    """Say whether a run that may be unfinished has decided otherwise so far."""
    if not (run / JOURNAL).exists():
        return ""
    so_far = [entry.decision for entry in replay(run / JOURNAL).entries]
    return "" if so_far == expected[: len(so_far)] else "another decision"


def _contents(run: Path) -> dict[str, bytes]:
    """Return all files of a run but its times: the journal and every checkpoint."""
    files = (file for file in run.rglob("*") if file.is_file() and file.name != TIMES)
    return {str(file.relative_to(run)): file.read_bytes() for file in files}


if __name__ == "__main__":
    for killed in kill_and_resume(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])):
        print(json.dumps(killed._asdict()), flush=True)
