"""Every number that a command, a suite or a catalogue takes has bounds, and keeps them.

What is tested follows from the fields: a new number without bounds fails.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    Optional,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import pytest

pytest.importorskip("torch")

from horizon_rl.cli import COMMANDS, HEAVY, main
from horizon_rl.curriculum import AdrCfg
from horizon_rl.domains import Parameter, Range
from horizon_rl.evaluation.suite_file import SuiteTable
from horizon_rl.grid.study_file import StudyFile
from horizon_rl.support.bounds import Within, check_bounds
from horizon_rl.support.errors import InputError


def commands() -> Iterator[type]:
    """Return the dataclasses of all commands."""
    for name, (flags, _) in COMMANDS.items():
        place = HEAVY.get(name, name)
        yield getattr(import_module(f"horizon_rl.cli.{place}"), flags)


def find_settings(hint: Any) -> Iterator[type]:
    """Find the dataclasses that a type is made of."""
    if is_dataclass(hint) and isinstance(hint, type):
        yield hint
        for inner in get_type_hints(hint, include_extras=True).values():
            yield from find_settings(inner)
    for arg in get_args(hint):
        yield from find_settings(arg)


def find_numbers(hint: Any, within: Within | None = None):
    """Find the numbers that a type is made of, each with its bounds, if it has any."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        marks = [mark for mark in args[1:] if isinstance(mark, Within)]
        yield from find_numbers(args[0], marks[0] if marks else None)
    elif hint in (int, float):
        yield hint, within
    elif origin is not Literal:
        for arg in args:
            yield from find_numbers(arg)


SETTINGS = sorted(
    {
        s
        for root in (*commands(), StudyFile, SuiteTable, Parameter)
        for s in find_settings(root)
    }
    - {Range},  # It checks itself.
    key=lambda kind: kind.__name__,
)
NUMBERS = [
    pytest.param(kind, name, hint, id=f"{kind.__name__}.{name}")
    for kind in SETTINGS
    for name, hint in get_type_hints(kind, include_extras=True).items()
    if any(find_numbers(hint))
]


def make(kind: type, **values: Any) -> Any:
    """Make settings, what is required filled in by words."""
    required = {
        field.name: Range(0.0, 1.0) if field.type is Range else "name"
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is MISSING
    }
    return kind(**{**required, **values})


@pytest.mark.parametrize(
    "hint",
    [
        *(list[int], set[int], Sequence[int], Mapping[str, int], dict[str, list[int]]),
        *(int | None, Optional[int], tuple[int, ...], Annotated[list[int], "words"]),
    ],
    ids=str,
)
def test_numbers_are_found_in_whatever_holds_them(hint):
    assert [*find_numbers(hint)] == [(int, None)]
    assert not [*find_numbers(Literal[1, 2])] and not [*find_numbers(list[str])]


def test_there_are_many_numbers():
    assert len(NUMBERS) > 100


@pytest.mark.parametrize(("kind", "name", "hint"), NUMBERS)
def test_number_has_bounds_and_is_refused_beyond_them(kind, name, hint):
    ((number, within),) = {*find_numbers(hint)}
    assert within is not None, f"{kind.__name__}.{name} has no bounds"
    assert math.isfinite(within.low) and math.isfinite(within.high)
    inner = hint.__args__[0] if get_origin(hint) in (Union, UnionType) else hint
    while get_origin(inner) is Annotated:
        inner = inner.__origin__
    for bad in (
        *(math.nan, math.inf, -math.inf, 1e308, -1e308, 10**400, -(10**400)),
        *(math.nextafter(within.low, -math.inf), math.nextafter(within.high, math.inf)),
        *((within.low + 0.5,) if number is int else ()),
    ):
        value: Any = bad
        if get_origin(inner) is tuple:
            size = len(get_args(inner)) if ... not in get_args(inner) else 1
            value = (bad,) * size
        if get_origin(inner) is dict:
            value = {"mass": bad}
        with pytest.raises(InputError, match=rf"\b{name}(\.mass)? is .*; accepted: "):
            check_bounds(make(kind, **{name: value}))


def test_words_that_are_none_of_those_accepted_are_refused():
    with pytest.raises(InputError, match="unit is 'body'; accepted: group, parameter"):
        AdrCfg(unit="body")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "args",
    [
        ["train", "--num-envs", str(10**12)],
        ["train", "--num-envs", "9" * 5000],
        ["train", "--num-envs", "500000", "--rows-per-env", "1000"],
        ["train", "--learner.actor.hidden-dims", *["64"] * 65],
        ["train", "--learner.ppo.gamma", "nan"],
        ["eval", "stand", "--severity", "nan"],
        ["eval", "stand", "--episodes", "-1"],
        ["play", "--command", "inf", "0", "0"],
        ["play", "--fps", "1e-300"],
        ["rehearse", "--learner.noise", "-0.1"],
        ["rehearse", "--compare", "--seeds", str(10**9)],
        ["bench", "curriculum", "--repeats", str(10**9)],
        ["watch", "--port", "65536"],
        ["diagnose", "run", "--horizon", "0"],
    ],
    ids=lambda args: " ".join(args)[:40],
)
def test_bad_number_on_the_command_line_is_refused_at_once(args, capsys):
    try:
        assert main(args) == 2
    except SystemExit as stop:  # What is no number at all.
        assert stop.code == 2
    assert capsys.readouterr().err
