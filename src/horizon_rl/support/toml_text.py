"""TOML texts, and the line at fault where one of them is wrong."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from horizon_rl.support.errors import InputError
from horizon_rl.support.records import FieldError


@contextmanager
def toml_tables(text: str, source: str) -> Iterator[dict[str, Any]]:
    """Parse a text; what is refused within is blamed on file `source` and the line."""
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Not only its own error: numbers of thousands of digits, endless nesting.
        raise InputError(f"{source}: not valid TOML: {error}") from error
    try:
        yield tables
    except FieldError as error:
        # A quoted key counts as its parts, as `find_line` splits it.
        keys = tuple(".".join(error.path).split("."))
        raise InputError(f"{source}:{find_line(text, keys)}: {error}") from error


def to_toml(data: Mapping[str, Any], prefix: str = "") -> str:
    """Write plain data as TOML; what is None is left out, for TOML has no word for it."""
    known = {key: value for key, value in data.items() if value is not None}
    tables = {k: v for k, v in known.items() if isinstance(v, Mapping)}
    values = {k: v for k, v in known.items() if k not in tables}
    lines = [f"{_key(key)} = {_value(value)}\n" for key, value in values.items()]
    if prefix and lines:
        lines.insert(0, f"\n[{prefix}]\n")
    for key, table in tables.items():
        lines.append(to_toml(table, f"{prefix}.{_key(key)}" if prefix else _key(key)))
    return "".join(lines)


def _key(text: str) -> str:
    return text if re.fullmatch(r"[\w-]+", text, re.ASCII) else json.dumps(text)


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    # TOML writes these as JSON does.
    is_plain = isinstance(value, bool | int | float)
    return json.dumps(value if is_plain else str(value), ensure_ascii=False)


def find_line(text: str, keys: tuple[str, ...]) -> int:
    """Return the line (from 1) that defines `keys`, or their nearest parent there is.

    tomllib keeps no line numbers. This reads only headers and the first key of a
    line, which is enough to point at a line; it decides nothing.
    """
    best_line, best_depth, table = 1, 0, ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[\[?([^\[\]]+)\]\]?\s*(#.*)?$", line):
            table = found = _split_keys(header[1])
        elif assignment := re.match(r"\s*([^=#]+?)\s*=", line):
            found = (*table, *_split_keys(assignment[1]))
        else:
            continue
        depth = len(found)
        if found == keys[:depth] and depth > best_depth:
            best_line, best_depth = number, depth
    return best_line


def _split_keys(dotted: str) -> tuple[str, ...]:
    return tuple(key.strip().strip("\"'") for key in dotted.split("."))
