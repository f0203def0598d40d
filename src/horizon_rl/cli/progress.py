"""How far an evaluation is, on the terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

Tell = Callable[[str, int, int], None]


@contextmanager
def show_progress(num_parts: int) -> Iterator[Callable[[str, str], Tell]]:
    """Show how far the whole work is, and how long it will still take.

    Yields a function that takes the names of a policy and a suite, part by part, and
    returns what an evaluator tells its progress to.
    """
    console, numbers = Console(stderr=True), count()
    is_shown = console.is_terminal
    with Progress(console=console, transient=True, disable=not is_shown) as bar:
        task = bar.add_task("", total=None)

        def show(policy: str, suite: str) -> Tell:
            number, said = next(numbers), False

            def tell(column: str, done: int, total: int) -> None:
                nonlocal said
                if not is_shown and done == total and not said:
                    print(f"{policy}: {suite} done", file=sys.stderr)
                    said = True
                bar.update(
                    task,
                    description=escape(f"{policy}, {column}"),
                    completed=number * total + done,
                    total=num_parts * total,
                )

            return tell

        yield show
