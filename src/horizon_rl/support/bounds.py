"""Bounds of settings, written where the setting is: `stand_share: Share = 0.1`.

A number, or a word of a `Literal`, is checked when the settings are made, before anything
is built or allocated.
`tests/test_bounds.py` finds the numbers of all commands, and fails for one without bounds.
"""

from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from horizon_rl.support.errors import out_of_bounds
from horizon_rl.support.records import FieldError, inside


class Within(NamedTuple):
    """Least and largest number that is accepted; of a tuple, of its entries."""

    low: float
    high: float


HUGE = 1e12
"""Where a quantity has no natural end: beyond it, arithmetic overflows."""

Share = Annotated[float, Within(0.0, 1.0)]
Amount = Annotated[float, Within(0.0, HUGE)]
"""Any quantity that is not negative."""
Positive = Annotated[float, Within(1e-12, HUGE)]
Count = Annotated[int, Within(1, 1_000_000)]
CountOrNone = Annotated[int, Within(0, 1_000_000)]
"""A count that may be 0, which has a meaning of its own."""
EnvSteps = Annotated[int, Within(0, 10**15)]
Seed = Annotated[int, Within(0, 2**63 - 1)]
Width = Annotated[int, Within(1, 65_536)]
"""Of a layer of a network."""
Widths = Annotated[tuple[Width, ...], Within(1, 64)]
MAX_WORLDS = 1_000_000
"""Simulated at once."""
MAX_DRAWS = 100_000
"""Of all parameters of a catalogue together."""
MAX_NUMBERS = 10**8
"""Drawn for a suite."""
NumWorlds = Annotated[int, Within(1, MAX_WORLDS)]
MAX_SCENARIOS = 100_000
"""Of a column of a suite."""
NumScenarios = Annotated[int, Within(0, MAX_SCENARIOS)]
MAX_THREADS = 4096
Threads = Annotated[int, Within(0, MAX_THREADS)]
"""0: as OMP_NUM_THREADS says, else one per core."""
Port = Annotated[int, Within(0, 65_535)]


class Bounded:
    """Settings, a dataclass, whose numbers and words are among those accepted."""

    def __post_init__(self) -> None:
        check_bounds(self)


class OutOfBoundsError(FieldError):
    """A value that is not accepted, said in a sentence about the setting."""

    between = " "


def check_bounds(settings: object) -> None:
    """Refuse a number of a dataclass, or of one in it, that is out of its bounds.

    And a word that is none of its `Literal`.
    """
    plain, others = _hints(type(settings))
    for name, (kind, (low, high)) in plain.items():
        value = getattr(settings, name)
        if problem := out_of_bounds(value, low, high, whole=kind is int):
            raise OutOfBoundsError(problem, (name,))
    for name, hint in others.items():
        found = getattr(settings, name)
        # Those that are `Bounded` have been checked as they were made.
        if is_dataclass(found) and not isinstance(found, Bounded):
            with inside(name):
                check_bounds(found)
        for path, problem in _problems(found, hint, (name,)):
            raise OutOfBoundsError(problem, path)


@cache  # A grid checks the settings of thousands of runs.
def _hints(cls: type) -> tuple[dict[str, tuple[type, Within]], dict[str, Any]]:
    """Return types and bounds of the fields that are a number, and types of the others.

    Those that cannot have bounds are left out.
    """
    hints = get_type_hints(cls, include_extras=True)
    plain = {
        name: get_args(hint)
        for name, hint in hints.items()
        if [type(mark) for mark in get_args(hint)[1:]] == [Within]
        and get_args(hint)[0] in (int, float)
    }
    unbounded = (str, bool, int, float)
    others = {k: h for k, h in hints.items() if k not in plain and h not in unbounded}
    return plain, others


def _problems(
    value: Any, hint: Any, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Find what is not accepted in a value of a type: where, and what is wrong."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        for kind in () if value is None else args:
            yield from _problems(value, kind, path)
    elif origin is Literal and value not in args:
        yield path, f"is {value!r}; accepted: {', '.join(map(str, args))}"
    elif value is None:
        return
    elif origin is Annotated:
        for low, high in (mark for mark in args[1:] if isinstance(mark, Within)):
            if not isinstance(value, tuple):
                problem = out_of_bounds(value, low, high, whole=args[0] is int)
            elif low <= len(value) <= high:
                continue
            else:
                problem = f"has {len(value)} entries; accepted: {low:g}..{high:g}"
            if problem:
                yield path, problem
        yield from _problems(value, args[0], path)
    elif origin is tuple:
        kinds = args[:1] * len(value) if args[1:] == (...,) else args
        for item, kind in zip(value, kinds, strict=True):
            yield from _problems(item, kind, path)
    elif origin is dict:
        for key, item in value.items():
            yield from _problems(item, args[1], (*path, key))
