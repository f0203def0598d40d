"""Real time: how many steps are due, and how well it is held."""

import time
from collections.abc import Callable

from horizon_rl.physics import CONTROL_DT

MAX_LAG_S = 0.25
"""What a machine is behind by more than this is given up, not caught up with."""


class Pace:
    """Says how many control steps are due; `speed` 1 is real time."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter):
        self._clock = clock
        self.speed = 1.0
        self.paused = False
        self._last = clock()
        self._due_s = 0.0
        self._window = self._last, 0

    def steps_due(self) -> int:
        """Return the steps to take now, and count them as taken."""
        now = self._clock()
        passed, self._last = now - self._last, now
        if self.paused:
            self._due_s = 0.0
            return 0
        self._due_s = min(self._due_s + passed * self.speed, MAX_LAG_S)
        steps = int(self._due_s / CONTROL_DT)
        self._due_s -= steps * CONTROL_DT
        began, taken = self._window
        self._window = began, taken + steps
        return steps

    def real_time_factor(self) -> float:
        """Return simulated over real time since the last call."""
        began, taken = self._window
        now = self._clock()
        self._window = now, 0
        return taken * CONTROL_DT / max(now - began, 1e-9)
