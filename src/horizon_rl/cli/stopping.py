"""Ctrl-C and SIGTERM, which stop a command in the same way.

SIGTERM is how job schedulers and containers end a process. What was begun can be gone on
with, so its exit code says: run the same again.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any

from horizon_rl.cli.printing import complain

EXIT_INTERRUPTED, EXIT_TERMINATED = 130, 75
"""Of a shell after Ctrl-C, and EX_TEMPFAIL of sysexits.h, which asks for another try."""


class Terminated(KeyboardInterrupt):
    """The process was asked to end."""


class StopRequest:
    """Whether somebody has asked to stop, and by which signal."""

    signal: int | None = None

    def is_asked(self) -> bool:
        return self.signal is not None


@contextmanager
def stoppable() -> Iterator[None]:
    """Let SIGTERM interrupt, as Ctrl-C does."""

    def interrupt(number: int, frame: Any) -> None:
        raise Terminated

    with _handled({signal.SIGTERM: interrupt}):
        yield


@contextmanager
def graceful_stop(
    words: str = "stopping after this iteration", *, speaks: bool = True
) -> Iterator[StopRequest]:
    """Turn the first Ctrl-C or SIGTERM into a request; the second stops at once."""
    request = StopRequest()
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, frame: Any) -> None:
        request.signal = number
        for which, handler in before.items():
            signal.signal(which, handler)
        if speaks:
            complain(f"\n{words}; Ctrl-C again stops at once")

    with _handled(dict.fromkeys(before, ask)):
        yield request


@contextmanager
def _handled(handlers: dict[signal.Signals, Callable]) -> Iterator[None]:
    """Handle signals so within; only the main thread can."""
    if current_thread() is not main_thread():
        yield
        return
    before = {number: signal.signal(number, h) for number, h in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
