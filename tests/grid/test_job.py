"""How the work on a run ends, by the exit code of its command."""

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pytest

from horizon_rl.grid import job as jobs
from horizon_rl.grid.job import Ended, Files, Job, run_job
from horizon_rl.grid.process import Stopped
from horizon_rl.grid.study_file import EvaluationPlan
from horizon_rl.runs.budget import Budget
from horizon_rl.support.errors import InputError
from run_files import stop


@pytest.fixture
def exits_with(monkeypatch):
    """Put a command that says a word and exits in the place of `horizon train`."""

    def replace(
        code: int, begun: Callable[[], object] = lambda: None, says="horizon: alas\n"
    ) -> None:
        @contextmanager
        def start(job: Job, command: list[str], log: Path, *rest: object):
            with log.open("a") as file:
                file.write(says)
            begun()
            does = f"import os; os.kill(os.getpid(), {-code})"
            does = does if code < 0 else f"exit({code})"
            with subprocess.Popen([sys.executable, "-c", does]) as child:
                yield child

        monkeypatch.setattr(jobs, "start", start)

    return replace


def make_job(folder: Path, **changes) -> Job:
    return Job(
        name="mine",
        folder=str(folder / "mine"),
        log=str(folder / "log"),
        config="",
        groups=(),
        budget=Budget(steps=1, minutes=0.0),
        device="cpu",
        catalogue=None,
        evaluate=(),
        cwd=str(folder),
        **changes,
    )


@pytest.mark.parametrize(
    ("code", "standing"),
    [(130, "stopped"), (75, "stopped"), (1, "failed"), (2, "failed")],
)
def test_after_the_deadline_only_an_interrupted_run_is_stopped(
    code, standing, exits_with, tmp_path, monkeypatch
):
    deadline = time.time() + 3600.0
    late = SimpleNamespace(**vars(time) | {"time": lambda: deadline + 1.0})
    exits_with(code, lambda: monkeypatch.setattr(jobs, "time", late))
    *_, ended = run_job(make_job(tmp_path, deadline=deadline))
    assert isinstance(ended, Ended) and ended.standing == standing


def test_a_run_that_never_began_in_time_is_stopped(tmp_path):
    *_, ended = run_job(make_job(tmp_path, deadline=time.time() - 1.0))
    assert isinstance(ended, Ended) and ended.standing == "stopped"


def test_the_log_of_a_run_that_failed_before_its_journal_comes_back(
    exits_with, tmp_path
):
    exits_with(2)
    *_, files, ended = run_job(make_job(tmp_path, away=True))
    assert files == Files(None, b"horizon: alas\n")
    assert ended == Ended(standing="failed", code=2, reason="alas")


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_a_run_that_was_killed_says_so_and_not_what_it_had_said_before(
    exits_with, tmp_path
):
    for signal, words in (
        (9, "signal 9, perhaps for lack of memory"),
        (15, "signal 15"),
    ):
        exits_with(-signal)
        *_, ended = run_job(make_job(tmp_path))
        reason = f"its process was killed ({words})"
        assert ended == Ended(standing="failed", code=-signal, reason=reason)


def test_the_reason_is_no_warning_and_of_this_attempt_alone(exits_with, tmp_path):
    for says, reason in (
        ("horizon: warning: careful\nhorizon: alas\n", "alas"),
        ("horizon: warning: careful\nOSError: no\n", "OSError: no"),
        ("", "no output"),
    ):
        exits_with(1, says=says)
        *_, ended = run_job(make_job(tmp_path))
        assert ended == Ended(standing="failed", code=1, reason=reason)


def test_a_run_whose_turn_had_not_come_is_stopped(tmp_path, monkeypatch):
    stopped = Event()

    @contextmanager
    def start(*args: object):
        stopped.set()
        raise Stopped
        yield

    monkeypatch.setattr(jobs, "start", start)
    *_, ended = run_job(make_job(tmp_path), is_stopped=stopped.is_set)
    assert ended == Ended(standing="stopped")


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_run_that_is_late_before_it_goes_on_is_evaluated(
    has_begun, tmp_path, monkeypatch
):
    """It waits for its turn, or its process is still at its imports."""

    @contextmanager
    def start(job: Job, command: list[str], log: Path, scratch: Path, *rest: object):
        is_training = command[0] == "train"
        if is_training:
            monkeypatch.setattr(jobs, "_is_late", lambda job: True)
            if not has_begun:
                raise Stopped
        (scratch / "evaluations.json").write_text('{"policy": "phase-00003"}')
        does = f"exit({130 * is_training})"
        with subprocess.Popen([sys.executable, "-c", does]) as child:
            yield child

    stop(tmp_path / "mine")
    monkeypatch.setattr(jobs, "start", start)
    plan = EvaluationPlan(columns=("all",), severity=(0.5,), episodes=16)
    job = replace(make_job(tmp_path), budget=Budget(steps=10**9), evaluate=(plan,))
    *_, ended = run_job(job)
    assert isinstance(ended, Ended) and ended.standing == "stopped"
    assert [found["policy"] for found in ended.evaluations] == ["phase-00003"]


def test_files_that_arrived_damaged_are_not_tried_again(tmp_path):
    *_, ended = run_job(make_job(tmp_path, away=True), b"x")
    assert isinstance(ended, Ended) and ended.code == jobs.BAD_INPUT
    assert ended.reason.startswith("files of mine arrived damaged: ")


def test_a_damaged_journal_is_named_and_not_tried_again(tmp_path):
    journal = stop(tmp_path / "mine") / "journal.jsonl"
    journal.write_bytes(b"x" + journal.read_bytes())
    *_, ended = run_job(make_job(tmp_path))
    assert isinstance(ended, Ended) and ended.code == jobs.BAD_INPUT
    assert ended.reason.startswith(f"{journal}:1: ")


def test_a_journal_that_cannot_be_read_now_may_be_later(tmp_path, monkeypatch):
    def stale(place):
        raise InputError("cannot read journal: Stale file handle") from OSError()

    monkeypatch.setattr(jobs, "_read", stale)
    *_, ended = run_job(make_job(tmp_path))
    assert isinstance(ended, Ended) and ended.code == 1
