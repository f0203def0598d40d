"""Read a catalogue from a TOML file, and say which line of a bad one is at fault."""

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from horizon_rl.domains.catalogue import Catalogue, Group
from horizon_rl.domains.parameter import Parameter, Range
from horizon_rl.support.errors import InputError, unknown
from horizon_rl.support.toml_text import TomlText, Where, is_number

PARAMETER_KEYS = tuple(f.name for f in fields(Parameter) if f.name != "name")

SHIPPED = ("paper", "extended")
"""Catalogues that come with the package: the paper's, and one with two groups more."""


@cache
def shipped_catalogue(name: str) -> Catalogue:
    """Return a catalogue that comes with the package."""
    if name not in SHIPPED:
        raise InputError(unknown("catalogue", name, SHIPPED))
    file = f"{name}.toml"
    text = resources.files("horizon_rl.domains").joinpath(file).read_text("utf-8")
    return parse_catalogue(text, source=file)


def paper_catalogue() -> Catalogue:
    """Return the paper's seven groups: the catalogue used unless another is given."""
    return shipped_catalogue("paper")


def load_catalogue(source: Path | str) -> Catalogue:
    """Return the shipped catalogue of that name, or read the TOML file at that path."""
    if str(source) in SHIPPED:
        return shipped_catalogue(str(source))
    try:
        text = Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(
            f"cannot read catalogue {source}: {why}. Accepted: {', '.join(SHIPPED)}, "
            "or a TOML file"
        ) from error
    return parse_catalogue(text, source=str(source))


def parse_catalogue(text: str, source: str = "catalogue") -> Catalogue:
    """Read a catalogue from TOML `text`; errors name `source` and the line.

    With `extends = "paper"` at the top, the text states only what differs from the
    paper's catalogue: keys that change, parameters and groups that are new. Another
    shipped catalogue can be extended likewise.
    """
    return _Reader(text, source).catalogue()


class _Reader(TomlText):
    """Turns tables into a catalogue."""

    extends: tuple[Group, ...] = ()

    def catalogue(self) -> Catalogue:
        data = self.parse()
        self._expect_keys(data, ("extends", "groups"), ())
        if "extends" in data:
            name = self._string(data["extends"], ("extends",))
            base = self._build(("extends",), lambda: shipped_catalogue(name))
            self.extends = base.groups
        groups = {group.name: group for group in self.extends}
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
            known = [group.name for group in self.extends]
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
            elif key == "effect":
                changes[key] = self._effect(value, at)
            else:
                changes[key] = self._string(value, at)
        if name in siblings:
            return self._build(where, lambda: replace(siblings[name], **changes))
        return self._build(where, lambda: Parameter(name=name, **changes))

    def _range(self, value: Any, where: Where) -> Range:
        ok = isinstance(value, list) and len(value) == 2 and all(map(is_number, value))
        if not ok:
            self._fail(where, f"{value!r} is not a range: write [low, high]")
        return self._build(where, lambda: Range(float(value[0]), float(value[1])))

    def _effect(self, value: Any, where: Where) -> str:
        """Read FILE.py:NAME or MODULE:NAME; a file is looked for beside this one."""
        place, colon, name = self._string(value, where).rpartition(":")
        if not (colon and place and name.isidentifier()):
            self._fail(where, f"{value!r} is not of the form FILE.py:NAME, MODULE:NAME")
        if place.endswith(".py"):
            place = str((Path(self.source).parent / place).resolve())
        return f"{place}:{name}"

    def _count(self, value: Any, where: Where) -> int:
        if not is_number(value) or not isinstance(value, int):
            self._fail(where, f"{value!r} is not a whole number")
        return value

    def _expect_name(self, name: str, where: Where) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
            self._fail(where, "names consist of letters, digits, '_' and '-'")
