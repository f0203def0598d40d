"""Time and waiting on the device that does the work."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from horizon_rl.support.timers import LapTimer


class Stopwatch:
    """Calls a function and adds up the time it takes, on a GPU by the GPU's clock."""

    def __init__(self, function: Callable[..., Any], device: torch.device):
        self.function, self.device = function, device
        self._clocks: list[LapTimer] = []

    @classmethod
    def around(cls, owner: Any, method: str, device: torch.device) -> "Stopwatch":
        """Put a stopwatch around a method of `owner`."""
        clock = cls(getattr(owner, method), device)
        setattr(owner, method, clock)
        return clock

    def __call__(self, *args: Any) -> Any:
        clock = LapTimer(self.device)
        result = self.function(*args)
        clock.mark()
        self._clocks.append(clock)
        return result

    def lap(self) -> float:
        """Return the seconds since the last lap, and start the next."""
        seconds = sum(sum(clock.seconds()) for clock in self._clocks)
        self._clocks.clear()
        return seconds


def finish(device: torch.device) -> None:
    """Wait until the device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


@contextmanager
def count_waits(device: torch.device) -> Iterator[list[str]]:
    """Collect where the host waits for a GPU, as far as torch notices it."""
    found: list[str] = []
    if device.type != "cuda":
        yield found
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield found
        finally:
            torch.cuda.set_sync_debug_mode("default")
    for warning in caught:
        if "synchronizing CUDA operation" in str(warning.message):
            found.append(f"{warning.filename}:{warning.lineno}")
