"""Errors a user can fix: what was wrong, where, and what is accepted."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from math import inf, isfinite
from numbers import Real


class InputError(Exception):
    """Bad input; the command line prints the message and exits with code 2."""


class RunError(Exception):
    """A run that had to stop; the command line prints the message and exits with 1."""


def require(
    name: str, value: float, low: float, high: float = inf, *, whole: bool = False
) -> None:
    """Refuse a setting that is not a finite number within its bounds."""
    if problem := out_of_bounds(value, low, high, whole=whole):
        raise InputError(f"{name} {problem}")


def out_of_bounds(value: float, low: float, high: float, *, whole: bool) -> str | None:
    """Say how a complaint about a number goes on that is out of its bounds."""
    is_number = isinstance(value, Real)
    fits = isinstance(value, int) or (not whole and is_number and isfinite(value))
    if fits and low <= value <= high:
        return None
    accepted = f"at least {low:g}" if high == inf else f"{low:g}..{high:g}"
    accepted = f"whole numbers, {accepted}" if whole else accepted
    if not is_number:
        # From Python anything may come: "0.5", [0.5], None.
        accepted = accepted if whole else f"a number, {accepted}"
        return f"is {value!r}; accepted: {accepted}"
    # An integer may have too many digits to be printed, or to be a float.
    huge = isinstance(value, int) and abs(value) > 1e300
    shown = "beyond all bounds" if huge else f"{value:.12g}"
    return f"is {shown}; accepted: {accepted}"


def unknown(kind: str, name: str, accepted: Iterable[str]) -> str:
    """Say that `name` is not a known `kind`, guess what was meant, list what exists.

    >>> unknown("group", "mas", ["mass", "com"])
    "unknown group 'mas': did you mean 'mass'? Accepted: mass, com"
    """
    names = list(accepted)
    return f"unknown {kind} '{name}'{guess(name, names)} Accepted: {', '.join(names)}"


def guess(name: str, accepted: Iterable[str]) -> str:
    """Return how a complaint about `name` goes on: with what was meant, or ends."""
    close = get_close_matches(name, list(accepted), n=1)
    return f": did you mean '{close[0]}'?" if close else "."


@contextmanager
def blame(subject: str, *kinds: type[Exception]) -> Iterator[None]:
    """Say what a complaint from inside is about.

    Args:
        subject: Put before it, with a colon.
        kinds: Errors that count as complaints; without any, InputError alone.
    """
    kinds = kinds or (InputError,)
    try:
        yield
    except kinds as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{subject}: {why}") from error


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Say which extra to install where an import inside fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("horizon_rl"):
            raise
        raise InputError(f"this needs {error.name}: {install(extra)}") from error


def install(extra: str) -> str:
    """Return the commands that install an extra, in a clone and without one."""
    # Of torch the constraints name a build for CPUs.
    pinned = "" if extra == "gpu" else "-c constraints.txt "
    return (
        f"in a clone, pip install {pinned}-e '.[{extra}]'; "
        f"else, pip install 'horizon-rl[{extra}] @ git+ADDRESS'"
    )


class NonFiniteError(ArithmeticError):
    """A gradient was not finite; neither it nor what followed changed a weight."""
