"""`horizon bench`: what the parts cost on this machine."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Literal

import tyro
from rich.console import Console
from rich.table import Table

from horizon_rl.cli.common import print_json
from horizon_rl.curriculum import (
    Curriculum,
    CurriculumCfg,
    Evidence,
    replay,
    start,
    step,
)
from horizon_rl.domains import paper_catalogue
from horizon_rl.errors import InputError

Part = Literal["curriculum"]


@dataclass(frozen=True, kw_only=True)
class BenchCmd:
    """Measure the curriculum core: decisions, journal, import."""

    part: tyro.conf.Positional[Part]
    """What to measure."""
    repeats: int = 7
    """Measurements to take the median of, after one to warm up."""
    json: bool = False
    """Print JSON instead of a table."""


def run(cmd: BenchCmd) -> None:
    if cmd.repeats < 1:
        raise InputError(f"--repeats is {cmd.repeats}; at least 1 is needed")
    figures = measure_curriculum(cmd.repeats)
    if cmd.json:
        print_json(figures)
        return
    table = Table(title="Curriculum core, medians", title_justify="left", box=None)
    table.add_column("what")
    table.add_column("cost", justify="right")
    for name, value in figures.items():
        what, _, unit = name.rpartition("_")
        table.add_row(what.replace("_", " "), f"{value:.3g} {unit}")
    Console().print(table)


def measure_curriculum(repeats: int) -> dict[str, float]:
    """Time a run of all seven groups in which every third phase fails."""
    groups, cfg = paper_catalogue().names, CurriculumCfg()
    good = Evidence(
        length=0.95,
        tracking_error=0.2,
        checkpoint_error=0.2,
        checkpoint_return=20.0,
        reference_error=0.2,
        reference_return=20.0,
    )
    bad = Evidence(length=0.4, tracking_error=0.6)

    def decide() -> int:
        state = start(groups, cfg)
        while state.proposal:
            state, _ = step(state, bad if state.phase % 3 == 2 else good, cfg)
        return state.phase

    with tempfile.TemporaryDirectory() as folder:
        paths = (Path(folder) / f"{i}.jsonl" for i in range(repeats + 1))

        def record() -> int:
            curriculum = Curriculum.create(next(paths), groups, cfg)
            while proposal := curriculum.ask():
                curriculum.tell(bad if proposal.phase % 3 == 2 else good)
            curriculum.close()
            return curriculum.state.phase

        def read() -> int:
            return len(replay(Path(folder) / "0.jsonl").entries)

        return {
            "decision_us": 1e6 * _median_cost(decide, repeats),
            "decision_on_disk_us": 1e6 * _median_cost(record, repeats),
            "replay_per_phase_us": 1e6 * _median_cost(read, repeats),
            "import_s": _import_seconds(repeats),
        }


def _median_cost(work: Callable[[], int], repeats: int) -> float:
    """Return the median over repeats of (seconds / units of work done)."""
    work()
    costs = []
    for _ in range(repeats):
        began = time.perf_counter()
        units = work()
        costs.append((time.perf_counter() - began) / units)
    return median(costs)


def _import_seconds(repeats: int) -> float:
    """Return what `import horizon_rl.curriculum` adds to starting Python."""
    code = (
        "import time; t = time.perf_counter(); import horizon_rl.curriculum; "
        "print(time.perf_counter() - t)"
    )
    command = [sys.executable, "-c", code]
    runs = [
        float(
            subprocess.run(command, capture_output=True, text=True, check=True).stdout
        )
        for _ in range(repeats + 1)
    ]
    return median(runs[1:])
