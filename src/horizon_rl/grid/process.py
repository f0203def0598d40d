"""The processes of a run: `horizon` commands that are watched, and stopped."""

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from horizon_rl.runs.paths import has_run, journal_of, metrics_file

try:
    import fcntl
except ImportError:  # There, kernels are compiled side by side.
    fcntl = None

POLL_S = 0.2
LOOK_EVERY_S = 1.0
"""Seconds between two looks at whether to stop, and what there is to bring back."""


class NodeShare(Protocol):
    """What a command may use of its node, and where it runs."""

    @property
    def folder(self) -> str: ...
    @property
    def cwd(self) -> str: ...
    @property
    def cpus(self) -> int: ...
    @property
    def gpus(self) -> float: ...


def watch(
    child: subprocess.Popen[bytes], should_stop: Callable[[], bool]
) -> Iterator[None]:
    """Wait for a command to end, and ask it to where it should stop."""
    looked, was_asked = time.monotonic(), False
    while child.poll() is None:
        with suppress(subprocess.TimeoutExpired):
            child.wait(POLL_S)
        if time.monotonic() - looked > LOOK_EVERY_S:
            if not was_asked and should_stop():
                was_asked = True
                ask_to_stop(child)
            yield
            looked = time.monotonic()


@contextmanager
def start(
    job: NodeShare, command: Sequence[str], log: Path, scratch: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command; whatever ends the work on it ends the command, too."""
    with open(log, "ab") as output, _first_on_node(job) as is_first:
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
        while is_first and child.poll() is None and not _has_iterated(command):
            time.sleep(POLL_S)
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        assert child.stdin
        child.stdin.close()


@contextmanager
def _first_on_node(job: NodeShare) -> Iterator[bool]:
    """Let the first run on a GPU node compile its kernels before others need them."""
    if not job.gpus or fcntl is None:
        yield False
        return
    key = hashlib.sha256(str(Path(job.folder).parent).encode()).hexdigest()[:16]
    with open(Path(tempfile.gettempdir()) / f"horizon-grid-{key}", "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        is_first = not file.read()
        yield is_first
        file.write("warm" * is_first)


def _has_iterated(command: Sequence[str]) -> bool:
    """Tell whether the run that a command trains has its kernels; others need none."""
    runs = [Path(b) for a, b in pairwise(command) if a in ("--run", "--resume")]
    return all(has_run(r) and metrics_file(journal_of(r)).exists() for r in runs)


def ask_to_stop(child: subprocess.Popen[bytes]) -> None:
    """Send a Ctrl-C, so that a run stops after its iteration."""
    assert child.stdin
    with suppress(BrokenPipeError):  # It has ended already.
        child.stdin.write(b"stop\n")
        child.stdin.flush()


def _environment(job: NodeShare, scratch: Path) -> Mapping[str, str]:
    threads = str(job.cpus)
    return {
        **os.environ,
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        # Processes that compile into one folder of Triton's have mixed up its files.
        "TRITON_CACHE_DIR": str(scratch / "triton"),
    }
