"""Values go to JSON and back exactly; what does not fit is refused by name."""

from dataclasses import dataclass
from typing import Literal

import pytest

from horizon_rl.support.errors import InputError
from horizon_rl.support.records import decode, dumps, encode


@dataclass(frozen=True)
class Inner:
    x: float
    word: Literal["a", "b"] = "a"


@dataclass(frozen=True)
class Outer:
    inner: Inner
    many: tuple[Inner, ...] = ()
    table: dict[str, float] | None = None
    flag: bool = False
    count: int = 0


def test_round_trip_is_exact():
    value = Outer(Inner(0.1 + 0.2), (Inner(1e-300), Inner(-0.0)), {"k": 1 / 3}, True, 7)
    assert decode(Outer, encode(value)) == value
    assert dumps(encode(decode(Outer, encode(value)))) == dumps(encode(value))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "Outer: field 'inner' is missing"),
        (
            {"inner": {"x": 1.0}, "flg": True},
            "unknown field 'flg': did you mean 'flag'",
        ),
        ({"inner": {"x": "1"}}, r"Outer.inner.x: '1' is not a number"),
        ({"inner": {"x": True}}, r"Outer.inner.x: True is not a number"),
        ({"inner": {"x": 1.0, "word": "c"}}, "'c' is not one of a, b"),
        ({"inner": {"x": 1.0}, "flag": 1}, "1 is not true or false"),
        ({"inner": {"x": 1.0}, "count": 1.5}, "1.5 is not a whole number"),
        ({"inner": {"x": 1.0}, "many": 3}, "Outer.many: 3 is not a list"),
        ({"inner": {"x": 1.0}, "many": [{"x": None}]}, r"Outer.many\[0\].x"),
        ([], r"Outer: \[\] is not a table"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(data, message):
    with pytest.raises(InputError, match=message):
        decode(Outer, data)


def test_nan_is_refused():
    with pytest.raises(ValueError):
        dumps({"x": float("nan")})
