"""Values go to JSON and back exactly; what does not fit is refused by name."""

from dataclasses import dataclass
from typing import Literal

import pytest

from horizon_rl.support.errors import InputError
from horizon_rl.support.records import (
    FieldError,
    agree,
    decode,
    decode_value,
    dumps,
    encode,
    flatten,
    inside,
)


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
    pair: tuple[str, float] = ("", 0.0)


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
        ({"inner": {"x": 1.0}, "pair": ["a"]}, r"pair: \['a'\] is not a list of 2"),
        ({"inner": {"x": 1.0}, "pair": ["a", "b"]}, r"pair\[1\]: 'b' is not a number"),
        ({"inner": {"x": float("inf")}}, "inner.x: inf is not a finite number"),
        ({"inner": {"x": 10**400}}, "is not a finite number"),
        ([], r"Outer: \[\] is not a table"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(data, message):
    with pytest.raises(InputError, match=message):
        decode(Outer, data)


def test_nan_is_refused():
    with pytest.raises(ValueError):
        dumps({"x": float("nan")})


def test_what_is_built_already_may_be_part_of_the_data():
    inner = Inner(2.0)
    assert decode_value(Outer, {"inner": inner}).inner is inner


def test_an_error_knows_the_keys_that_lead_to_it():
    with pytest.raises(FieldError) as error, inside("suite", "columns"):
        decode_value(Outer, {"inner": {"x": 1.0}, "many": [{"x": "?"}]})
    assert error.value.path == ("suite", "columns", "many", "[0]", "x")
    assert str(error.value) == "suite.columns.many[0].x: '?' is not a number"


def test_what_a_class_itself_refuses_is_placed_too():
    @dataclass(frozen=True)
    class Picky:
        n: int

        def __post_init__(self):
            raise InputError(f"{self.n} will not do")

    with pytest.raises(FieldError, match=r"^Picky: 3 will not do$"):
        decode(Picky, {"n": 3})


def test_flatten_names_every_value_by_its_path():
    groups = [{"name": "mass", "draws": 1}, {"draws": 2}]
    data = {"seed": 3, "learner": {"sizes": (8, 8)}, "groups": groups, "empty": {}}
    assert flatten(data) == {
        **{"seed": 3, "learner.sizes": (8, 8), "groups.mass.name": "mass"},
        **{"groups.mass.draws": 1, "groups.1.draws": 2},
    }


def test_plain_data_agrees_within_a_tolerance():
    data = {"a": [1.0, {"b": 2.0}], "c": 3, "d": None}
    near = {"a": [1.0005, {"b": 2.0}], "c": 3, "d": None}
    assert agree(data, near, 1e-3) and not agree(data, near, 1e-4)
    assert agree(data, dict(data), 0.0) and not agree(data, near, 0.0)
    for other in ({**near, "c": 4}, {**near, "a": [1.0]}, {**near, "e": 1}):
        assert not agree(data, other, 1e-3)
