"""A timer for work that a GPU may still be doing when Python has long gone on."""

import time
from itertools import pairwise
from typing import Any

import torch


class LapTimer:
    """Measures the laps between its marks, on the device that does the work."""

    def __init__(self, device: torch.device):
        """Start the first lap."""
        self._device = device
        # Any: numbers on a CPU, events on a GPU.
        self._marks: list[Any] = []
        self.mark()

    def mark(self) -> None:
        """End a lap and start the next; on a GPU, when it gets there."""
        if self._device.type != "cuda":
            self._marks.append(time.perf_counter())
            return
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self._device))
        self._marks.append(event)

    def seconds(self) -> list[float]:
        """Return the seconds of all laps, once the device has reached the last mark."""
        laps = pairwise(self._marks)
        if self._device.type != "cuda":
            return [end - start for start, end in laps]
        self._marks[-1].synchronize()
        return [start.elapsed_time(end) / 1000.0 for start, end in laps]
