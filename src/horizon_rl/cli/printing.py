"""Printing where perhaps nobody reads: on a full disk, into a pipe without a reader."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from horizon_rl.support.printable import printable


def complain(text: str) -> None:
    """Print to stderr; where that fails, exit codes say enough."""
    with printing_may_fail(sys.stderr):
        print(printable(text), file=sys.stderr)


@contextmanager
def printing_may_fail(stream: TextIO | None = None) -> Iterator[None]:
    """Go on unseen where a stream, else stdout, takes nothing."""
    output = stream or sys.stdout
    try:
        yield
        output.flush()
    except OSError:
        mute(output)


def mute(stream: TextIO) -> None:
    """Throw away what is still buffered: it would fail again when Python exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
