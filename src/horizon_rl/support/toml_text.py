"""Tables of a TOML text, and the line at fault where one of them is wrong."""

import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

from horizon_rl.support.errors import InputError, unknown

T = TypeVar("T")
Where = tuple[str, ...]
"""Keys that lead to a value: ("groups", "mass", "parameters", "scale", "limit")."""


class TomlText:
    """A TOML text, with the checks that readers of it share."""

    def __init__(self, text: str, source: str):
        self.text, self.source = text, source

    def parse(self) -> Mapping[str, Any]:
        try:
            return tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{self.source}: not valid TOML: {error}") from error

    def _number(self, value: Any, where: Where) -> float:
        # TOML knows inf and nan, and whole numbers too large for a float.
        if not is_number(value) or not abs(value) < 1e300:
            self._fail(where, f"{value!r} is not a finite number")
        return float(value)

    def _string(self, value: Any, where: Where) -> str:
        if not isinstance(value, str):
            self._fail(where, f"{value!r} is not a string")
        return value

    def _table(self, value: Any, where: Where) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            self._fail(where, f"{value!r} is not a table")
        return value

    def _expect_keys(
        self, table: Mapping[str, Any], accepted: tuple[str, ...], where: Where
    ) -> None:
        for key in table:
            if key not in accepted:
                self._fail((*where, key), unknown("key", key, accepted))

    def _build(self, where: Where, make: Callable[[], T]) -> T:
        """Call `make`, adding the place in the file to what it complains about."""
        try:
            return make()
        except InputError as error:
            self._fail(where, str(error))

    def _fail(self, where: Where, message: str) -> NoReturn:
        # A quoted key counts as its parts, as `find_line` splits it.
        keys = tuple(".".join(where).split("."))
        place = f"{self.source}:{find_line(self.text, keys)}"
        parts = (place, ".".join(where), message)
        raise InputError(": ".join(filter(None, parts)))


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def find_line(text: str, where: Where) -> int:
    """Return the line (from 1) that defines `where`, or its nearest parent there is.

    tomllib keeps no line numbers. This reads only headers and the first key of a
    line, which is enough to point at a line; it decides nothing.
    """
    best_line, best_depth, table = 1, 0, ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[\[?([^\[\]]+)\]\]?\s*(#.*)?$", line):
            table = keys = _split_keys(header[1])
        elif assignment := re.match(r"\s*([^=#]+?)\s*=", line):
            keys = (*table, *_split_keys(assignment[1]))
        else:
            continue
        depth = len(keys)
        if keys == where[:depth] and depth > best_depth:
            best_line, best_depth = number, depth
    return best_line


def _split_keys(dotted: str) -> Where:
    return tuple(key.strip().strip("\"'") for key in dotted.split("."))
