"""A run that is killed, anywhere and often, ends as if nothing had happened."""

import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from killing import assert_ends_as, die, kill, prepare_fork, run_in_child, wait
from small_runs import STORMY_ACTIONS, actions, create, finish, resume, stormy

from horizon_rl.learning import checkpoint as checkpoint_module
from horizon_rl.runs.directory import RunDirectory
from horizon_rl.runs.journal import Journal, replay
from horizon_rl.runs.lines import to_line
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import encode
from horizon_rl.training import run as run_module
from horizon_rl.training.run import Run

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL"),
    pytest.mark.filterwarnings("ignore:.*fork", "ignore:.*torn last line"),
]


SHORT = stormy(max_phases=3)
"""Commit, rollback, commit."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """An uninterrupted run."""
    path = tmp_path_factory.mktemp("whole") / "run"
    assert actions(finish(create(SHORT, path))) == STORMY_ACTIONS[:3]
    return path


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> Path:
    """The same run, before its first phase."""
    path = tmp_path_factory.mktemp("fresh") / "run"
    create(SHORT, path).close()
    return path


@pytest.fixture
def begun(fresh, tmp_path) -> Path:
    """A copy of it."""
    return shutil.copytree(fresh, tmp_path / "run")


@pytest.mark.parametrize(
    "kills",
    [
        pytest.param(6, marks=pytest.mark.slow),
        pytest.param(50, marks=pytest.mark.manual),
    ],
)
def test_killed_at_random_moments_and_resumed_equals_uninterrupted(kills, begun, whole):
    rng = random.Random(0)
    began = time.perf_counter()
    shutil.copytree(begun, begun.with_name("timed"))
    assert wait(run_in_child(begun.with_name("timed"))) == 0
    reach_s = 0.6 * (time.perf_counter() - began)
    expected = replay(whole / "journal.jsonl").entries

    hits: list[int] = []
    while sum(hits) < kills or max(hits) < 2:
        assert len(hits) < 10 * kills, "hardly a kill came in time"
        path = begun.with_name(f"run-{len(hits)}")
        shutil.copytree(begun, path)
        hits.append(0)
        status, num_judged = -signal.SIGKILL, 0
        while status != 0:
            pid = run_in_child(path)
            time.sleep(rng.uniform(0.0, reach_s))
            os.kill(pid, signal.SIGKILL)
            status = wait(pid)
            assert status in (0, -signal.SIGKILL), "a resumed run failed by itself"
            hits[-1] += status == -signal.SIGKILL
            so_far = replay(path / "journal.jsonl").entries
            assert so_far == expected[: len(so_far)]
            # A machine that has become slower must not keep it from getting on, nor one
            # that has become faster from being killed.
            reach_s *= 1.0 if len(so_far) > num_judged else 1.2
            num_judged = len(so_far)
        reach_s *= 1.0 if hits[-1] > 1 else 0.7
        assert_ends_as(path, whole)


# Aimed.


def cut_weights(call: int) -> None:
    write, calls = Path.write_bytes, []

    def torn(self, data):
        calls.append(self)
        write(self, data[: len(data) // 2] if len(calls) == call else data)
        if len(calls) == call:
            die()

    setattr(Path, "write_bytes", torn)  # noqa: B010


def cut_journal(call: int) -> None:
    append, calls = Journal.append, []

    def torn(self, entry):
        calls.append(entry)
        if len(calls) == call:
            line = to_line(encode(entry))
            self._file.write(line[: len(line) // 2])
            die()
        append(self, entry)

    setattr(Journal, "append", torn)  # noqa: B010


POINTS: dict[str, Callable[[int], None]] = {
    "before the evidence": lambda n: kill(RunDirectory, "write_evidence", n),
    "evidence not yet in place": lambda n: kill(os, "replace", n),
    "after the evidence": lambda n: kill(RunDirectory, "write_evidence", n, after=True),
    "in the weights": cut_weights,
    "between weights and record": lambda n: kill(checkpoint_module, "dumps", n),
    "checkpoint not yet in place": lambda n: kill(os, "rename", n),
    "after the checkpoint": lambda n: kill(os, "rename", n, after=True),
    "before the journal line": lambda n: kill(Journal, "append", n),
    "in the journal line": cut_journal,
    "after the journal line": lambda n: kill(Journal, "append", n, after=True),
    "after the times": lambda n: kill(Run, "record_times", n, after=True),
}


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_point_of_the_commit_and_resumed_equals_uninterrupted(
    point, begun, whole
):
    for call in (1, 2):
        pid = run_in_child(begun, lambda call=call: POINTS[point](call))
        assert wait(pid) == -signal.SIGKILL
    finish(resume(begun))
    assert_ends_as(begun, whole)


def test_run_that_was_killed_before_it_had_begun_is_none(tmp_path):
    pid = os.fork()
    if not pid:
        try:
            prepare_fork()
            kill(run_module, "create_curriculum", 1)
            create(SHORT, tmp_path / "run")
        finally:
            os._exit(0)
    assert wait(pid) == -signal.SIGKILL
    with pytest.raises(InputError, match="holds no run: there is no journal"):
        resume(tmp_path / "run")
