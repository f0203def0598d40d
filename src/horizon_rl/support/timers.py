"""A timer for work that a GPU may still be doing when Python has long gone on."""

import time

import torch


class LapTimer:
    """Measures the laps between its marks, on the device that does the work."""

    def __init__(self, device: torch.device):
        """Start the first lap."""
        self._device = device
        self._marks: list[float | torch.cuda.Event] = []
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
        last = self._marks[-1]
        if isinstance(last, torch.cuda.Event):
            last.synchronize()
        laps = zip(self._marks, self._marks[1:], strict=False)
        return [_between(start, end) for start, end in laps]


def _between(
    start: "float | torch.cuda.Event", end: "float | torch.cuda.Event"
) -> float:
    if isinstance(start, float) and isinstance(end, float):
        return end - start
    assert isinstance(start, torch.cuda.Event) and isinstance(end, torch.cuda.Event)
    return start.elapsed_time(end) / 1000.0
