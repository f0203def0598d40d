"""Time and waiting on the device that does the work."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from horizon_rl.support.timers import LapTimer


class Stopwatch:
    """Adds up the time that a method takes, on a GPU by the GPU's clock."""

    def __init__(self, owner: Any, method: str, device: torch.device):
        """Put a stopwatch around a method of `owner`."""
        self._method, self._device = getattr(owner, method), device
        self._timers: list[LapTimer] = []
        setattr(owner, method, self)

    def __call__(self, *args: Any) -> Any:
        timer = LapTimer(self._device)
        result = self._method(*args)
        timer.mark()
        self._timers.append(timer)
        return result

    def lap(self) -> float:
        """Return the seconds since the last lap, and start the next."""
        seconds = sum(sum(timer.seconds()) for timer in self._timers)
        self._timers.clear()
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
