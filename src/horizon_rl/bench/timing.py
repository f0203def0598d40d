"""How things are timed here: warmed up, interleaved, medians."""

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median


def median_costs(
    works: Mapping[str, Callable[[], int]], repeats: int
) -> dict[str, float]:
    """Return each work's median seconds per unit; a work returns its units.

    The works take turns, so that a machine that grows slow or fast during the run does
    so for all of them, and ratios between them stay fair.
    """
    for work in works.values():
        work()
    costs: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            began = time.perf_counter()
            units = work()
            costs[name].append((time.perf_counter() - began) / units)
    return {name: median(values) for name, values in costs.items()}


def resident_bytes() -> int:
    """Return the memory this process holds now, or 0 where that cannot be read."""
    if sys.platform != "linux":
        return 0
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096
