"""Commands of a run stop when they are asked to, and end with who started them."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from horizon_rl.evaluation.array_cache import software
from horizon_rl.grid.process import compiles_kernels, start, watch
from run_files import begin

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
# The lightest command that takes minutes.
LONG = ("rehearse", "--compare", "--seeds", "1000")


@dataclass(frozen=True)
class Node:
    folder: str
    cwd: str
    cpus: int = 1
    gpus: float = 0.0


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


def test_it_stops_when_it_is_asked_to(node, tmp_path):
    log = tmp_path / "log"
    with start(node, LONG, log, tmp_path) as child:
        began = time.monotonic()
        for _ in watch(child, lambda: time.monotonic() - began > 2.0):
            assert time.monotonic() - began < 60.0
    assert child.returncode == 130
    assert log.read_text().endswith("horizon: interrupted\n")


def test_it_ends_at_once_when_its_parent_is_killed(tmp_path):
    code = (
        "import sys, time; sys.path[:0] = sys.argv[3].split(':')\n"
        "from pathlib import Path\n"
        "from horizon_rl.grid.process import start\n"
        "from test_process import LONG, Node\n"
        "here = Path(sys.argv[1])\n"
        "with start(Node(str(here), str(here)), LONG, here / 'log', here) as child:\n"
        "    Path(sys.argv[2]).write_text(str(child.pid)); time.sleep(600)\n"
    )
    told = tmp_path / "pid"
    here = Path(__file__).parent
    path = f"{here}:{here.parent}:{os.environ.get('PYTHONPATH', '')}"
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path), str(told), path]
    )
    try:
        pid = int(wait_for(lambda: told.exists() and told.read_text()))
        wait_for(lambda: (tmp_path / "log").exists())
        time.sleep(1.0)
        os.kill(pid, 0)  # It is there.
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    wait_for(lambda: not is_running(pid))


def test_runs_on_a_gpu_let_the_first_compile(node, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    gpu = Node(folder=node.folder, cwd=node.cwd, gpus=0.5)
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


def wait_for(fact, seconds: float = 60.0):
    deadline = time.monotonic() + seconds
    while not (found := fact()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
