"""Commands of a run stop when they are asked to, and end with who started them."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from typing import Any

import pytest
from grids import is_alive

from horizon_rl.evaluation.array_cache import software
from horizon_rl.grid.process import (
    Stopped,
    ask_to_stop,
    compiles_kernels,
    start,
    watch,
)
from run_files import begin
from waiting import wait_for

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
# The lightest command that takes minutes, and says that it has begun.
LONG = ("rehearse", "--method", "fixed", "--curriculum.max-phases", "100000")
LONG += ("--run", "run")


@dataclass(frozen=True)
class Node:
    """What the processes of a job need to know of it."""

    folder: str
    cwd: str
    cpus: int = 1
    gpus: float = 0.0
    visible_gpu: str | None = None


@pytest.fixture
def node(tmp_path) -> Node:
    return Node(folder=str(tmp_path / "runs" / "a"), cwd=str(tmp_path))


def test_a_command_is_that_of_horizon(node, tmp_path):
    log = tmp_path / "log"
    with start(node, ["--version"], log, tmp_path) as child:
        for _ in watch(child, lambda: False):
            pass
    assert child.returncode == 0
    assert log.read_text().startswith("horizon-rl ")


def test_it_sees_no_gpu_but_its_own(node, tmp_path, monkeypatch):
    seen = []

    def note(command, *, env, **options):
        seen.append(env.get("CUDA_VISIBLE_DEVICES"))
        return popen(command, env=env, **options)

    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", note)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    for share, gpu in ((0.5, None), (0.5, "5"), (0.0, None)):
        job = replace(node, gpus=share, visible_gpu=gpu)
        with start(job, ["--version"], tmp_path / "log", tmp_path):
            pass
    assert seen == ["3,5", "5", ""]


def test_it_stops_when_it_is_asked_to(node, tmp_path, monkeypatch):
    monkeypatch.setattr("horizon_rl.grid.process.LOOK_EVERY_S", 0.05)
    log, journal = tmp_path / "log", tmp_path / "run" / "journal.jsonl"
    with start(node, LONG, log, tmp_path) as child:
        for _ in watch(child, journal.exists):
            pass
    assert child.returncode == 130
    assert log.read_text().endswith("horizon: interrupted\n")


def test_one_that_ended_before_it_was_asked_to_stop_is_no_failure(node, tmp_path):
    with start(node, ["--version"], tmp_path / "log", tmp_path) as child:
        child.wait()
        ask_to_stop(child)
    assert child.returncode == 0


@pytest.mark.filterwarnings("ignore:.*fork")
def test_it_ends_at_once_when_its_parent_is_killed(node, tmp_path):
    told, journal = tmp_path / "pid", tmp_path / "run" / "journal.jsonl"
    parent = os.fork()
    if not parent:
        try:
            with start(node, LONG, tmp_path / "log", tmp_path) as child:
                told.write_text(str(child.pid))
                time.sleep(86400.0)
        finally:
            os._exit(1)
    try:
        wait_for(journal.exists)
        pid = int(told.read_text())
        assert is_alive(pid)
    finally:
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
    wait_for(lambda: not is_alive(pid))


def test_runs_on_a_gpu_let_the_first_compile(node, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    gpu: Any = Node(folder=node.folder, cwd=node.cwd, gpus=0.5)
    log = tmp_path / "log"

    def marks(*command: str) -> list[str]:
        with start(gpu, command, log, tmp_path) as child:
            child.wait()
        return [file.read_text() for file in tmp_path.glob("horizon-grid-*")]

    assert marks("eval", "--help") == []
    assert marks("train", "--preset", "none", "--run", "a") == [""]  # It failed.
    for _ in range(2):
        assert marks("train", "--help", "--run", "a") == ["warm"]
    # Other versions have other kernels.
    other = {**software(), "warp-lang": "9.9"}
    monkeypatch.setattr("horizon_rl.evaluation.array_cache.software", lambda: other)
    assert marks("train", "--help", "--run", "a") == ["warm", "warm"]


def test_who_waits_for_the_first_to_compile_is_not_started_once_all_stops(
    node, tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    gpu: Any = Node(folder=node.folder, cwd=node.cwd, gpus=0.5)
    log = tmp_path / "log"
    with start(gpu, ["train", "--preset", "none"], log, tmp_path):
        pass  # It fails: nothing was compiled, and the next is the first again.
    (marker,) = tmp_path.glob("horizon-grid-*")
    looks = iter([False, True])
    with marker.open() as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        waiting = start(gpu, ["train"], log, tmp_path, lambda: next(looks))
        with pytest.raises(Stopped):
            waiting.__enter__()
    assert not [*looks]


def test_a_command_ends_where_nobody_could_wait_for_its_kernels(
    node, tmp_path, monkeypatch
):
    """An orphan would train on, and keep its journal locked."""
    children = []

    def fail(child, *args):
        children.append(child)
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("horizon_rl.grid.process.compiles_kernels", fail)
    gpu: Any = Node(folder=node.folder, cwd=node.cwd, gpus=0.5)
    with pytest.raises(OSError, match="Stale file handle"):
        start(gpu, ["train", "--help"], tmp_path / "log", tmp_path).__enter__()
    (child,) = children
    assert child.returncode == -signal.SIGKILL and child.stdin.closed


def test_the_first_stops_while_it_compiles(tmp_path):
    child: Any = Acting(lambda: None, lambda: None)
    looks = iter([False, True])
    assert not compiles_kernels(child, ["train"], lambda: next(looks))
    assert not child.acts


def test_file_system_without_locks_stops_no_run(node, tmp_path, monkeypatch):
    def refuse(*args):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("fcntl.flock", refuse)
    gpu: Any = Node(folder=node.folder, cwd=node.cwd, gpus=0.5)
    with start(gpu, ["train", "--help"], tmp_path / "log", tmp_path) as child:
        assert child.wait() == 0


class Acting:
    """A command that does something every time that somebody looks at it."""

    returncode = None

    def __init__(self, *acts):
        self.acts = [*acts]

    def poll(self) -> None:
        self.acts.pop(0)()


def test_the_first_waits_until_its_run_has_iterated(tmp_path):
    run, metrics = tmp_path / "run", tmp_path / "run/metrics.jsonl"
    child: Any = Acting(lambda: begin(run), lambda: metrics.write_text("1\n"))
    assert compiles_kernels(child, ["train", "--run", str(run)]) and not child.acts
    # What it had before is no sign, and the phase that was not judged goes.
    metrics.write_text("1\n2\n")
    child = Acting(
        lambda: None,
        lambda: metrics.write_text("1\n"),
        lambda: metrics.write_text("1\n2\n"),
    )
    assert compiles_kernels(child, ["train", "--resume", str(run)]) and not child.acts
