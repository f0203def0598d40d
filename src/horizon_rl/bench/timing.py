"""How things are timed here: warmed up, interleaved, medians."""

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any


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


class Stopwatch:
    """Calls a function and adds up the time it takes."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function
        self._seconds = 0.0

    @classmethod
    def around(cls, owner: Any, method: str) -> "Stopwatch":
        """Put a stopwatch around a method of `owner`."""
        clock = cls(getattr(owner, method))
        setattr(owner, method, clock)
        return clock

    def __call__(self, *args: Any) -> Any:
        began = time.perf_counter()
        result = self.function(*args)
        self._seconds += time.perf_counter() - began
        return result

    def lap(self) -> float:
        """Return the seconds since the last lap, and start the next."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds


def resident_bytes() -> int:
    """Return the memory this process holds now, or 0 where that cannot be read."""
    if sys.platform != "linux":
        return 0
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096
