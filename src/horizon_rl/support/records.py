"""Frozen dataclasses to JSON and back, exactly and strictly.

Floats survive to the bit (Python prints the shortest text that reads back the same),
keys keep their order, and the same value always gives the same bytes.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, asdict, fields, is_dataclass
from functools import cache
from math import isclose, isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from horizon_rl.support.errors import InputError, unknown

T = TypeVar("T")

_type_hints = cache(get_type_hints)

NOUNS = {int: "a whole number", bool: "true or false", str: "a string"}


class FieldError(InputError):
    """What is wrong with a value, and the keys that lead to it."""

    between = ": "

    def __init__(self, problem: str, path: tuple[str, ...] = ()):
        place = ".".join(path).replace(".[", "[")
        super().__init__(self.between.join(filter(None, (place, problem))))
        self.problem, self.path = problem, path


@contextmanager
def inside(*keys: str) -> Iterator[None]:
    """Say of what is refused within that it lies below `keys`."""
    try:
        yield
    except InputError as error:
        raise _deeper(error, *keys) from error


def encode(value: Any) -> dict[str, Any]:
    """Turn a dataclass into plain dicts, lists and scalars."""
    return asdict(value)


def flatten(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Name every value by its path, `learner.ppo.num_steps`.

    Mappings in a list go by the name that they have, else by their number.
    """
    flat: dict[str, Any] = {}
    for key, value in data.items():
        several = value if isinstance(value, list | tuple) else ()
        if any(isinstance(v, Mapping) for v in several):
            names = (
                v.get("name", k) if isinstance(v, Mapping) else k
                for k, v in enumerate(value)
            )
            value = dict(zip(names, value, strict=True))
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def dumps(data: Any) -> str:
    """Write JSON on one line; refuses NaN, which other readers could not read."""
    return json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def loads(text: str | bytes) -> Any:
    """Read JSON; refuses what `dumps` never writes: NaN, numbers beyond all bounds.

    Raises:
        InputError: It is no such JSON, or too deeply nested.
    """
    try:
        return json.loads(
            text, parse_constant=_finite, parse_float=_finite, parse_int=_whole
        )
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}") from error


def _finite(text: str) -> float:
    if isfinite(number := float(text)):
        return number
    raise ValueError(f"{text} is not a JSON number")


def _whole(text: str) -> int:
    _finite(text)  # What is larger than any float breaks arithmetic elsewhere.
    return int(text)


def agree(one: Any, other: Any, tolerance: float) -> bool:
    """Tell whether plain data is the same, numbers within a tolerance."""
    if not tolerance or one == other:
        return one == other
    if isinstance(one, dict) and isinstance(other, dict):
        same = one.keys() == other.keys()
        return same and all(agree(one[key], other[key], tolerance) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(agree(*p, tolerance) for p in pairs)
    if isinstance(one, float) and isinstance(other, float):
        return isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
    return False


def decode(cls: type[T], data: Any) -> T:
    """Build `cls` from plain data; wrong, missing or unknown fields are refused."""
    with inside(cls.__name__):
        return decode_value(cls, data)


def decode_part(cls: type[T], data: Any) -> T:
    """Build `cls` from plain data that may have more fields."""
    _expect(isinstance(data, Mapping), data, "a table")
    return decode(cls, {k: v for k, v in data.items() if k in _type_hints(cls)})


def decode_value(kind: Any, data: Any) -> Any:
    """Build a value of a type; dataclasses that are built already may be part of it."""
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return data
    if is_dataclass(kind):
        return _decode_dataclass(kind, data)
    if origin in (Union, UnionType):
        if data is None and NoneType in args:
            return None
        return _decode_first([a for a in args if a is not NoneType], data)
    if origin is Literal:
        return _expect(data in args, data, f"one of {', '.join(map(str, args))}")
    if origin is tuple:
        _expect(isinstance(data, list | tuple), data, "a list")
        kinds = args[:1] * len(data) if args[1:] == (...,) else args
        _expect(len(data) == len(kinds), data, f"a list of {len(kinds)}")
        items = zip(kinds, data, strict=True)
        return tuple(_decode_item(k, x, f"[{i}]") for i, (k, x) in enumerate(items))
    if origin in (dict, Mapping):
        _expect(isinstance(data, dict), data, "a table")
        return {k: _decode_item(args[1], x, k) for k, x in data.items()}
    if kind is float:
        number = isinstance(data, int | float) and not isinstance(data, bool)
        _expect(number, data, "a number")
        finite = abs(data) <= sys.float_info.max
        return float(_expect(finite, data, "a finite number"))
    if kind is Path:
        return Path(_expect(isinstance(data, str | Path), data, NOUNS[str]))
    if kind in NOUNS:
        return _expect(type(data) is kind, data, NOUNS[kind])
    raise FieldError(f"{data!r} does not fit {kind}")


def _decode_item(kind: Any, data: Any, key: str) -> Any:
    # Not by `inside`: long journals are decoded item by item.
    try:
        return decode_value(kind, data)
    except InputError as error:
        raise _deeper(error, key) from error


def _decode_first(kinds: list[Any], data: Any) -> Any:
    """Decode as the first of several types that fits; dataclasses differ by fields."""
    complaints = []
    for kind in kinds:
        try:
            return decode_value(kind, data)
        except InputError as error:
            complaints.append(error)
    if len(complaints) == 1:
        raise complaints[0]
    raise FieldError(" or ".join(map(str, complaints)))


def _decode_dataclass(cls: Any, data: Any) -> Any:
    if isinstance(data, cls):
        return data
    _expect(isinstance(data, Mapping), data, "a table")
    hints = _type_hints(cls)
    for key in data:
        if key not in hints:
            raise FieldError(unknown("field", key, hints), (key,))
    for field in fields(cls):
        required = field.default is MISSING and field.default_factory is MISSING
        if required and field.name not in data:
            raise FieldError(f"field '{field.name}' is missing")
    return cls(**{k: _decode_item(hints[k], x, k) for k, x in data.items()})


def _deeper(error: InputError, *keys: str) -> FieldError:
    if isinstance(error, FieldError):
        return type(error)(error.problem, (*keys, *error.path))
    return FieldError(str(error), keys)


def _expect(ok: bool, data: Any, accepted: str) -> Any:
    if not ok:
        raise FieldError(f"{data!r} is not {accepted}")
    return data
