"""Grids in processes of their own, and what to kill of them."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path

from horizon_rl.cli import main
from horizon_rl.grid.folder import GridFolder
from horizon_rl.runs.paths import has_run, journal_of
from horizon_rl.runs.verify import verify_run

PATIENCE_S = 1800.0
CLUSTER = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": "0123456789abcdef" * 4,
    "RAY_worker_niceness": "0",
}
"""What all nodes of a cluster of tests have in common, and who joins it."""
BASE = """
[train]
preset = "smoke"
device = "cpu"
steps = {steps}

[methods.horizon]
[methods.fixed]
levels = "0.35"
"""


def write_study(folder: Path, seeds: list[int], steps: int, more: str = "") -> Path:
    """Write a study of two methods; `more` may be evaluations."""
    file = folder / "study.toml"
    file.write_text(f"seeds = {seeds}\n{BASE.format(steps=steps)}\n{more}\n")
    return file


def start_grid(study: Path, out: Path, *flags: str) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "horizon_rl",
        "grid",
        str(study),
        "--out",
        str(out),
    ]
    return subprocess.Popen(
        [*command, *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **(CLUSTER if "--address" in flags else {})},
    )


def finish(grid: subprocess.Popen[str]) -> str:
    """Wait for a grid to end well; return what it said."""
    out, _ = grid.communicate(timeout=PATIENCE_S)
    assert grid.returncode == 0, out
    return out


def train_by_hand(grid: Path, names: list[str], place: Path) -> None:
    """Train runs of a grid as a user would, one after the other."""
    for name in names:
        settings = str(grid / "settings" / f"{name}.toml")
        run = str(place / name)
        flags = ["--config", settings, "--run", run, "--table", "0"]
        assert main(["train", *flags]) == 0


def assert_same_runs(one: Path, other: Path, names: list[str]) -> None:
    """Compare journals, which name every checkpoint's digest, and these with the files."""
    for name in names:
        journals = [journal_of(place / name) for place in (one, other)]
        lines = [journal.read_text().splitlines() for journal in journals]
        for pair in zip_longest(*lines):
            assert pair[0] == pair[1], f"{name}:\n{pair[0]}\n{pair[1]}"
        for journal in journals:
            _, findings = verify_run(journal)
            for finding in findings:
                assert not finding.problems and finding.sound == finding.total, name


def read_records(out: Path) -> dict[str, dict]:
    lines = GridFolder(out).records.read_text().splitlines()
    return {record["run"]: record for record in map(json.loads, lines)}


def descendants(pid: int) -> dict[int, str]:
    """Return the processes below one, and their command lines."""
    parents, commands = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except (OSError, UnicodeDecodeError):
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
            commands[int(entry.name)] = line
    found: dict[int, str] = {}
    for process in parents:
        above = process
        while above in parents:
            above = parents[above]
            if above == pid:
                found[process] = commands[process]
                break
    return found


def is_alive(pid: int) -> bool:
    """Tell whether a process is there, and not only until its parent notices its end."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


WORKERS = r"ray::(horizon|fixed)_s|.*grid\.child"


def workers(pid: int, kind: str = WORKERS) -> list[int]:
    """Return the commands of runs, and the workers of Ray's that started them."""
    found = descendants(pid).items()
    return [process for process, line in found if re.match(kind, line)]


def kill_at_random(grid: subprocess.Popen[str], kills: int, rng: random.Random) -> int:
    """Kill workers, and commands of theirs, at random moments; return how many died."""
    done = 0
    while done < kills and grid.poll() is None:
        time.sleep(rng.uniform(0.5, 6.0))
        if found := workers(grid.pid):
            os.kill(rng.choice(found), signal.SIGKILL)
            done += 1
    return done


def wait_for_phase(run: Path, phases: int, alive: subprocess.Popen[str]) -> None:
    """Wait until a run has judged this many phases."""
    began = time.monotonic()
    while alive.poll() is None and time.monotonic() - began < PATIENCE_S:
        if has_run(run) and journal_of(run).read_bytes().count(b"\n") > phases:
            return
        time.sleep(0.05)
    raise AssertionError(f"{run} never judged {phases} phases")


@contextmanager
def node(*flags: str) -> Iterator[subprocess.Popen[bytes]]:
    """A node of a Ray cluster: `ray start`, and all its processes, to be killed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", *flags],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, **CLUSTER},
    )
    try:
        yield process
    finally:
        kill_node(process)


def kill_node(process: subprocess.Popen[bytes]) -> None:
    """Kill a node as a power cut does: everything of it at once."""
    for child in [*descendants(process.pid), process.pid]:
        try:
            os.kill(child, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()
