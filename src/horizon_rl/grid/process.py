"""The processes of a run: `horizon` commands that are watched, and stopped."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING

from horizon_rl.evaluation.array_cache import make_key
from horizon_rl.runs.paths import has_run, journal_of, metrics_file
from horizon_rl.support.durable import fcntl

if TYPE_CHECKING:
    from horizon_rl.grid.job import Job

POLL_S = 0.2
LOOK_EVERY_S = 1.0
"""Seconds between two looks at whether to stop, and what there is to bring back."""


class Stopped(Exception):
    """A command was not started, because it would have had to stop at once."""


def watch(
    child: subprocess.Popen[bytes], should_stop: Callable[[], bool]
) -> Iterator[None]:
    """Wait for a command to end, and ask it to where it should stop."""
    looked, was_asked = time.monotonic(), False
    while child.poll() is None:
        time.sleep(POLL_S)  # To wait with a timeout looks twenty times a second.
        if time.monotonic() - looked > LOOK_EVERY_S:
            if not was_asked and should_stop():
                was_asked = True
                ask_to_stop(child)
            yield
            looked = time.monotonic()


@contextmanager
def start(
    job: "Job",
    command: Sequence[str],
    log: Path,
    scratch: Path,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command; whatever ends the work on it ends the command, too.

    Raises:
        Stopped: It was to stop before its turn to start came.
    """
    turn = _turn_on_node(job, command, should_stop)
    with ExitStack() as ending:
        with open(log, "ab") as output, turn as marker:
            child = subprocess.Popen(
                [sys.executable, "-m", "horizon_rl.grid.child", *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=job.cwd if Path(job.cwd).is_dir() else None,
                env=_environment(job, scratch),
                # Ctrl-C in a terminal is ours to pass on.
                start_new_session=True,
            )
            ending.callback(_end, child)
            # One that fails may have compiled nothing: the next is then the first.
            if marker and compiles_kernels(child, command, should_stop):
                marker.write("warm")
        yield child


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    assert child.stdin
    with suppress(BrokenPipeError):  # It ended before it was asked to.
        child.stdin.close()


@contextmanager
def _turn_on_node(
    job: "Job", command: Sequence[str], should_stop: Callable[[], bool]
) -> Iterator[IO[str] | None]:
    """Let the first run on a GPU node compile its kernels before others train.

    Yields the file in which the first says that it has; None to all others. The file is
    of this software: after an upgrade, kernels are compiled again.
    """
    if not job.gpus or fcntl is None or command[0] != "train":
        yield None  # Without locks, kernels are compiled side by side.
        return
    key = make_key(runs=str(Path(job.folder).parent))[:16]
    with open(Path(tempfile.gettempdir()) / f"horizon-grid-{key}", "a+") as file:
        while not _is_locked_by_us(file):
            if should_stop():
                raise Stopped
            time.sleep(POLL_S)
        file.seek(0)
        yield None if file.read() else file


def _is_locked_by_us(file: IO[str]) -> bool:
    """Lock a file, unless somebody has; where there are no locks, many are the first."""
    assert fcntl
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def compiles_kernels(
    child: subprocess.Popen[bytes],
    command: Sequence[str],
    should_stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Wait until a training run has iterated, or ended; tell whether it has kernels."""
    size = _metrics_size(command)
    while child.poll() is None:
        if should_stop():
            return False
        # A run that is resumed begins with fewer lines than it had.
        before, size = size, _metrics_size(command)
        if size > before:
            return True
        time.sleep(POLL_S)
    return child.returncode == 0


def _metrics_size(command: Sequence[str]) -> int:
    """Return the bytes that the run of a command has written about its iterations."""
    runs = [Path(b) for a, b in pairwise(command) if a in ("--run", "--resume")]
    files = [metrics_file(journal_of(run)) for run in runs if has_run(run)]
    return sum(file.stat().st_size for file in files if file.exists())


def ask_to_stop(child: subprocess.Popen[bytes]) -> None:
    """Send a Ctrl-C, so that a run stops after its iteration."""
    assert child.stdin
    with suppress(BrokenPipeError):  # It has ended already.
        child.stdin.write(b"stop\n")
        child.stdin.flush()


def _environment(job: "Job", scratch: Path) -> Mapping[str, str]:
    threads = str(job.cpus)
    # Without a share it sees no GPU.
    gpu = job.visible_gpu if job.gpus else ""
    return {
        **os.environ,
        **({} if gpu is None else {"CUDA_VISIBLE_DEVICES": gpu}),
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        # Processes that compile into one folder of Triton's have mixed up its files.
        "TRITON_CACHE_DIR": str(scratch / "triton"),
    }
