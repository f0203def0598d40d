"""Read a catalogue from a TOML file, and say which line of a bad one is at fault."""

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from horizon_rl.domains.catalogue import Catalogue, Group
from horizon_rl.domains.parameter import Parameter, Range
from horizon_rl.errors import InputError, unknown

T = TypeVar("T")
Where = tuple[str, ...]
"""Keys that lead to a value: ("groups", "mass", "parameters", "scale", "limit")."""

PARAMETER_KEYS = tuple(f.name for f in fields(Parameter) if f.name != "name")


@cache
def paper_catalogue() -> Catalogue:
    """Return the paper's seven groups: the catalogue used unless another is given."""
    text = resources.files("horizon_rl.domains").joinpath("paper.toml").read_text()
    return parse_catalogue(text, source="paper.toml")


def load_catalogue(path: Path | str) -> Catalogue:
    """Read the catalogue in the TOML file at `path`."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read catalogue {path}: {error}") from error
    return parse_catalogue(text, source=str(path))


def parse_catalogue(text: str, source: str = "catalogue") -> Catalogue:
    """Read a catalogue from TOML `text`; errors name `source` and the line.

    With `extends = "paper"` at the top, the text states only what differs from the
    paper's catalogue: keys that change, parameters and groups that are new.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{source}: not valid TOML: {error}") from error
    return _Reader(text, source).catalogue(data)


class _Reader:
    """Turns tables into values, and knows the text they came from."""

    def __init__(self, text: str, source: str):
        self.text, self.source = text, source
        self.extends = False

    def catalogue(self, data: Mapping[str, Any]) -> Catalogue:
        self._expect_keys(data, ("extends", "groups"), ())
        if "extends" in data and data["extends"] != "paper":
            message = f'extends = {data["extends"]!r}: only "paper" can be extended'
            self._fail(("extends",), message)
        self.extends = "extends" in data
        old = paper_catalogue().groups if self.extends else ()
        groups = {group.name: group for group in old}
        tables = self._table(data.get("groups", {}), ("groups",))
        for name, table in tables.items():
            where = ("groups", name)
            groups[name] = self._group(name, table, groups.get(name), where)
        if not groups:
            raise InputError(
                f"{self.source}: no groups in this file. A catalogue has tables such "
                'as [groups.mass.parameters.scale], or extends = "paper"'
            )
        return Catalogue(tuple(groups.values()))

    def _group(self, name: str, table: Any, old: Group | None, where: Where) -> Group:
        self._expect_name(name, where)
        table = self._table(table, where)
        self._expect_keys(table, ("about", "parameters"), where)
        parameters = {p.name: p for p in old.parameters} if old else {}
        about = self._string(table.get("about", old.about if old else ""), where)
        where = (*where, "parameters")
        for key, value in self._table(table.get("parameters", {}), where).items():
            parameters[key] = self._parameter(key, value, parameters, (*where, key))
        return self._build(
            where[:2],
            lambda: Group(
                name=name, parameters=tuple(parameters.values()), about=about
            ),
        )

    def _parameter(
        self, name: str, table: Any, siblings: Mapping[str, Parameter], where: Where
    ) -> Parameter:
        self._expect_name(name, where)
        table = self._table(table, where)
        self._expect_keys(table, PARAMETER_KEYS, where)
        missing = [key for key in ("baseline", "limit") if key not in table]
        if missing and name not in siblings:
            # Half a parameter is a misspelt one more often than a new one.
            hint = f"{' and '.join(missing)} missing for a new parameter"
            known = paper_catalogue().names if self.extends else ()
            if siblings:
                hint = f"{unknown('parameter', name, siblings)}; or {hint}"
            elif known:
                hint = f"{unknown('group', where[1], known)}; or {hint}"
            self._fail(where, hint)
        changes: dict[str, Any] = {}
        for key, value in table.items():
            at = (*where, key)
            if key in ("baseline", "limit"):
                changes[key] = self._range(value, at)
            elif key == "draws":
                changes[key] = self._count(value, at)
            elif key.endswith("_power"):
                changes[key] = self._number(value, at)
            else:
                changes[key] = self._string(value, at)
        if name in siblings:
            return self._build(where, lambda: replace(siblings[name], **changes))
        return self._build(where, lambda: Parameter(name=name, **changes))

    def _range(self, value: Any, where: Where) -> Range:
        ok = isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))
        if not ok:
            self._fail(where, f"{value!r} is not a range: write [low, high]")
        return self._build(where, lambda: Range(float(value[0]), float(value[1])))

    def _count(self, value: Any, where: Where) -> int:
        if not _is_number(value) or not isinstance(value, int):
            self._fail(where, f"{value!r} is not a whole number")
        return value

    def _number(self, value: Any, where: Where) -> float:
        if not _is_number(value) or not math.isfinite(value):
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

    def _expect_name(self, name: str, where: Where) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
            self._fail(where, "names consist of letters, digits, '_' and '-'")

    def _build(self, where: Where, make: Callable[[], T]) -> T:
        """Call `make`, adding the place in the file to what it complains about."""
        try:
            return make()
        except InputError as error:
            self._fail(where, str(error))

    def _fail(self, where: Where, message: str) -> NoReturn:
        line = find_line(self.text, where)
        raise InputError(f"{self.source}:{line}: {'.'.join(where)}: {message}")


def _is_number(value: Any) -> bool:
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
