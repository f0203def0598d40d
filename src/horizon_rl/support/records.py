"""Frozen dataclasses to JSON and back, exactly and strictly.

Floats survive to the bit (Python prints the shortest text that reads back the same),
keys keep their order, and the same value always gives the same bytes.
"""

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from horizon_rl.support.errors import InputError, unknown

T = TypeVar("T")


def encode(value: Any) -> dict[str, Any]:
    """Turn a dataclass into plain dicts, lists and scalars."""
    return asdict(value)


def dumps(data: Any) -> str:
    """Write JSON on one line; refuses NaN, which other readers could not read."""
    return json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def decode(cls: type[T], data: Any) -> T:
    """Build `cls` from plain data; wrong, missing or unknown fields are refused."""
    return _decode(cls, data, cls.__name__)


def _decode(kind: Any, data: Any, where: str) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return data
    if is_dataclass(kind):
        return _decode_dataclass(kind, data, where)
    if origin in (Union, UnionType):
        if data is None and NoneType in args:
            return None
        return _decode_first([a for a in args if a is not NoneType], data, where)
    if origin is Literal:
        return _expect(data in args, data, where, f"one of {', '.join(map(str, args))}")
    if origin is tuple and isinstance(data, list | tuple):
        return tuple(_decode(args[0], x, f"{where}[{i}]") for i, x in enumerate(data))
    if origin in (dict, Mapping) and isinstance(data, dict):
        return {k: _decode(args[1], x, f"{where}.{k}") for k, x in data.items()}
    if kind is float:
        number = isinstance(data, int | float) and not isinstance(data, bool)
        return float(_expect(number, data, where, "a number"))
    if kind in (int, bool, str):
        return _expect(type(data) is kind, data, where, f"of type {kind.__name__}")
    raise InputError(f"{where}: {data!r} does not fit {kind}")


def _decode_first(kinds: list[Any], data: Any, where: str) -> Any:
    """Decode as the first of several types that fits; dataclasses differ by fields."""
    complaints = []
    for kind in kinds:
        try:
            return _decode(kind, data, where)
        except InputError as error:
            complaints.append(str(error))
    raise InputError(" or ".join(complaints))


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _decode_dataclass(cls: Any, data: Any, where: str) -> Any:
    _expect(isinstance(data, Mapping), data, where, "an object")
    hints = _hints(cls)
    for key in data:
        if key not in hints:
            raise InputError(f"{where}: {unknown('field', key, hints)}")
    for field in fields(cls):
        required = field.default is MISSING and field.default_factory is MISSING
        if required and field.name not in data:
            raise InputError(f"{where}: field '{field.name}' is missing")
    values = {k: _decode(hints[k], data[k], f"{where}.{k}") for k in data}
    return cls(**values)


def _expect(ok: bool, data: Any, where: str, accepted: str) -> Any:
    if not ok:
        raise InputError(f"{where}: {data!r} is not {accepted}")
    return data
