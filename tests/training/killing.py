"""Runs in forked processes, which are killed."""

import gc
import os
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from small_runs import finish, journal, resume


def prepare_fork() -> None:
    """A forked child has none of its parent's threads, and must not wait for them."""
    gc.freeze()  # Worlds of its parent's that it cleared away would.
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)


def fork(work: Callable[[], int | None], said: Path | None = None) -> int:
    """Work in a forked process, whose output may go to a file; return its id."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        prepare_fork()
        if said is not None:
            sys.stdout = sys.stderr = open(said, "w", buffering=1)
        status = work() or 0
    finally:
        os._exit(status)  # No clean-up: this process never leaves the test.


def run_in_child(path: Path, prepare: Callable[[], object] = lambda: None) -> int:
    """Resume the run in a forked process; return its id."""

    def work() -> None:
        prepare()
        finish(resume(path))

    return fork(work)


def assert_ends_as(path: Path, whole: Path) -> None:
    """Compare all that two runs have written but their times."""
    assert journal(path) == journal(whole)
    assert _files(path) == _files(whole)
    for file in (whole / "evidence").iterdir():
        assert (path / "evidence" / file.name).read_bytes() == file.read_bytes()


def _files(path: Path) -> list[str]:
    return sorted(str(file.relative_to(path)) for file in path.rglob("*"))


def wait(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill(owner: object, name: str, call: int, *, after: bool = False) -> None:
    """Die before, or after, something is called for that time."""
    original, calls = getattr(owner, name), []

    def deadly(*args, **kwargs):
        calls.append(name)
        if len(calls) == call and not after:
            die()
        result = original(*args, **kwargs)
        if len(calls) == call:
            die()
        return result

    setattr(owner, name, deadly)
