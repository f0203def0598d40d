"""How far an evaluation is: a bar on a terminal, a line now and then elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from time import monotonic

from rich.markup import escape
from rich.progress import Progress

from horizon_rl.cli.common import Terminal
from horizon_rl.show.numbers import show_duration
from horizon_rl.support.printable import printable

Tell = Callable[[str, int, int], None]
INTERVAL_S = 10.0
"""Between two lines where there is no terminal."""


@contextmanager
def show_progress(num_parts: int) -> Iterator[Callable[[str, str], Tell]]:
    """Show how far the whole work is, and how long it will still take.

    Yields a function that takes the names of a policy and a suite, part by part, and
    returns what an evaluator tells its progress to.
    """
    console, numbers = Terminal(stderr=True), count()
    lines = None if console.is_terminal else _Lines()
    with Progress(console=console, transient=True, disable=lines is not None) as bar:
        task = bar.add_task("", total=None)

        def show(policy: str, suite: str) -> Tell:
            number, said = next(numbers), False

            def tell(column: str, done: int, total: int) -> None:
                nonlocal said
                completed, whole = number * total + done, num_parts * total
                if lines:
                    lines.tell(f"{policy}, {column}", completed, whole)
                    if done == total and not said:
                        print(printable(f"{policy}: {suite} done"), file=sys.stderr)
                        said = True
                bar.update(
                    task,
                    description=escape(f"{policy}, {column}"),
                    completed=completed,
                    total=whole,
                )

            return tell

        yield show


class _Lines:
    """Progress for a file or a pipe."""

    def __init__(self):
        self._start = self._last = monotonic()
        self._first = None

    def tell(self, what: str, done: int, total: int) -> None:
        """Say how much is done if it is time to, and what is left at the pace so far."""
        now = monotonic()
        if self._first is None:
            # What was on disk took no time and says nothing about the rest.
            self._start, self._first = now, done
        if now - self._last < INTERVAL_S or done == total:
            return
        self._last = now
        pace = (done - self._first) / (now - self._start)
        left = f", about {show_duration((total - done) / pace)} left" if pace else ""
        text = printable(f"{what}: {done / total:.0%}{left}")
        print(text, file=sys.stderr, flush=True)
