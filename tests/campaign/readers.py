"""Who reads a file or an input that was altered, and what comes of it.

A reader returns what follows from its input, in a form that can be compared. Input that is
refused ends in an InputError; a warning is said. Of what has a checksum, or follows from
other files, any other result than the sound one's must be said.
"""

import io
import shlex
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

from horizon_rl.cli import COMMANDS, HEAVY, main
from horizon_rl.cli.parse import parse
from horizon_rl.support.errors import InputError

Read = Callable[[], Any]


@dataclass(frozen=True)
class Kind:
    """A file or input, who reads it, and how it is altered."""

    file: Path
    read: Read
    mutate: Callable[[bytes, Random], bytes]
    sealed: bool
    """Whether another result must be said."""
    ms: float = 1.0
    """About what a mutation takes."""


def read_each(*readers: Read) -> list[Any]:
    """Let all read, even after one has refused; what one refuses is refused."""
    results, refusals = [], []
    for read in readers:
        try:
            results.append(read())
        except (InputError, OSError) as error:
            refusals.append(error)
    if refusals:
        raise refusals[0]
    return results


def run_command(*args: object) -> str:
    """Run a command on what may be damaged; return what it printed.

    A complaint of its is raised, a warning of its is said.
    """
    out, err = io.StringIO(), io.StringIO()
    # A command shows warnings in its own way, and nobody else would notice them.
    with warnings.catch_warnings(), redirect_stdout(out), redirect_stderr(err):
        code = main([str(arg) for arg in args])
    if code and "horizon: the memory" in err.getvalue():
        raise MemoryError(err.getvalue())
    if code:
        raise InputError(err.getvalue())
    if err.getvalue():
        warnings.warn(err.getvalue(), stacklevel=2)
    return out.getvalue()


def run_sound(*args: object) -> str:
    """Run a command that must work; return what it printed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run_command(*args)


def parse_line(text: str) -> str:
    """Read a command's settings from its line; nothing runs."""
    try:
        name, *args = shlex.split(text) or [""]
    except ValueError as error:  # The shell would refuse it.
        raise InputError(str(error)) from error
    if name not in COMMANDS:
        raise InputError(f"no command {name}")
    flags = import_module(f"horizon_rl.cli.{HEAVY.get(name, name)}")
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            return repr(parse(name, flags, getattr(flags, COMMANDS[name][0]), args))
    except SystemExit as stop:
        if stop.code in (0, 2):
            raise InputError("refused, or help") from stop
        raise
