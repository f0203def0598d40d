"""What a grid costs beyond its runs: CPU seconds and wall time, by hand and by the grid.

python benchmarks/grid.py [STEPS] [ROUNDS] [WORKERS]

Both train the same runs of the smoke preset on the CPU, in turn, WORKERS side by side
with one core each. CPU seconds are of all processes. What a grid uses beside its runs is
known exactly on a busy machine too; the ratios are not.
"""

import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

STUDY = """
seeds = {seeds}
[train]
preset = "smoke"
device = "cpu"
steps = {steps}
[methods.horizon]
"""
HORIZON = (sys.executable, "-m", "horizon_rl")
ONE_CORE = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
LOOK_EVERY_S = 0.25


class CpuClock:
    """CPU seconds of processes and all that they start, as /proc has them."""

    def __init__(self):
        self._ticks: dict[tuple[int, str], int] = {}
        self._runs: set[tuple[int, str]] = set()

    def look(self, roots: list[int]) -> None:
        stats = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    line = (entry / "stat").read_text()
                except OSError:
                    continue  # It has ended.
                stats[int(entry.name)] = line.rpartition(")")[2].split()
        found = {pid for pid, _ in self._ticks} | {*roots}
        while more := {p for p in stats if int(stats[p][1]) in found} - found:
            found |= more
        for pid in found & stats.keys():
            process = pid, stats[pid][19]
            self._ticks[process] = sum(map(int, stats[pid][11:13]))
            with suppress(OSError):
                if b"\0train\0" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    self._runs.add(process)

    @property
    def run_s(self) -> float:
        """Of the runs themselves."""
        return sum(self._ticks[process] for process in self._runs) / TICKS_A_SECOND

    @property
    def other_s(self) -> float:
        return sum(self._ticks.values()) / TICKS_A_SECOND - self.run_s


def run_all(commands: list[list[str]], workers: int) -> tuple[float, float, float]:
    """Run commands, this many side by side.

    Returns:
        CPU seconds of runs and of all else, and wall time.
    """
    clock, began = CpuClock(), time.perf_counter()
    left, under_way = [*commands], []
    while left or under_way:
        while left and len(under_way) < workers:
            command = [*HORIZON, *left.pop(0)]
            quiet = subprocess.DEVNULL
            under_way.append(subprocess.Popen(command, env=ONE_CORE, stdout=quiet))
        time.sleep(LOOK_EVERY_S)
        clock.look([child.pid for child in under_way])
        for child in [c for c in under_way if c.poll() is not None]:
            assert child.returncode == 0, child.args
            under_way.remove(child)
    return clock.run_s, clock.other_s, time.perf_counter() - began


def measure(steps: int, workers: int) -> tuple[tuple[float, float, float], ...]:
    """Train runs by hand, then the same by a grid."""
    with tempfile.TemporaryDirectory() as folder:
        study, grid = Path(folder) / "study.toml", str(Path(folder) / "grid")
        names, hand = [f"s{seed}" for seed in range(workers)], []
        study.write_text(STUDY.format(seeds=[*range(workers)], steps=steps))
        smoke = ["train", "--preset", "smoke", "--device", "cpu", "--table", "0"]
        for name in names:
            own = ["--seed", name[1:], "--run", f"{folder}/{name}"]
            hand.append([*smoke, "--steps", str(steps), *own])
        by_hand = run_all(hand, workers)
        flags = ["--out", grid, "--workers", str(workers)]
        by_grid = run_all([["grid", str(study), *flags]], 1)
        for name in names:
            own, other = (
                (Path(run) / "journal.jsonl").read_bytes()
                for run in (f"{folder}/{name}", f"{grid}/runs/horizon_{name}")
            )
            assert own == other, f"{name} differs"
        return by_hand, by_grid


def main(steps: str = "100000", rounds: str = "3", workers: str = "2") -> None:
    found = []
    for number in range(int(rounds)):
        (hand_cpu, _, hand_s), (run_cpu, other_cpu, grid_s) = measure(
            int(steps), int(workers)
        )
        found.append(
            (other_cpu / run_cpu, run_cpu / hand_cpu - 1.0, grid_s / hand_s - 1)
        )
        print(
            f"{number}: by hand {hand_cpu:.1f} CPU s in {hand_s:.1f} s; grid: runs "
            f"{run_cpu:.1f} CPU s, all else {other_cpu:.1f}, in {grid_s:.1f} s",
            flush=True,
        )
    other, runs, wall = 100.0 * np.median(found, axis=0)
    print(
        f"beside its runs a grid uses {other:.1f} % of their CPU time (medians); they "
        f"take {runs:+.1f} % of those by hand, and all of it {wall:+.1f} % wall time"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
