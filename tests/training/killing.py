"""Runs in forked processes, which are killed."""

import gc
import os
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from small_runs import finish, resume

from horizon_rl.runs.lines import parse_line
from horizon_rl.runs.paths import JOURNAL, METRICS, TIMES
from horizon_rl.runs.verify import verify_run


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
    """Compare all that two runs have written but their times, to the bit."""
    files, expected = _files(path), _files(whole)
    for name in sorted({*files, *expected}):
        assert name in files, f"no {name}"
        assert files[name] == expected.get(name, "nothing"), f"another {name}"
    for finding in verify_run(path / JOURNAL)[1]:
        assert not finding.problems, finding


def _files(path: Path) -> dict[str, object]:
    return {str(file.relative_to(path)): _content(file) for file in path.rglob("*")}


def _content(file: Path) -> object:
    """Return what a file holds that does not depend on the clock."""
    if file.is_dir() or file.name == TIMES:
        return None
    if file.name != METRICS:
        return file.read_bytes()
    lines = [parse_line(line, "line") for line in file.read_bytes().splitlines()]
    return [{k: v for k, v in line.items() if not k.endswith("_s")} for line in lines]


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
