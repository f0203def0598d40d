"""Waiting for what happens elsewhere: another thread, a browser, another process.

Patience is for machines that are busy with other things. A test that passes never needs
much of it, and one that hangs should still say where.
"""

import time
from collections.abc import Callable

PATIENCE_S = 900.0


def wait_for(fact: Callable[[], object], seconds: float = PATIENCE_S) -> None:
    """Return once something is so."""
    end = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)
