"""Read a catalogue from a TOML file, and say which line of a bad one is at fault."""

import re
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from horizon_rl.domains.catalogue import Catalogue, Group
from horizon_rl.domains.parameter import Parameter, Range
from horizon_rl.support.errors import InputError, unknown
from horizon_rl.support.records import FieldError, decode_value, inside
from horizon_rl.support.toml_text import expect_table, toml_tables

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
    paper's catalogue: keys that change, parameters and groups that are new. Other
    shipped catalogues can be extended the same way.
    """
    groups: dict[str, Group] = {}
    with toml_tables(text, source) as data:
        expect_table(data, ("extends", "groups"))
        if "extends" in data:
            with inside("extends"):
                name = decode_value(str, data["extends"])
                groups = {group.name: group for group in shipped_catalogue(name).groups}
        with inside("groups"):
            tables = expect_table(data.get("groups", {}))
        new = {}
        for name, table in tables.items():
            with inside("groups", name):
                new[name] = _read_group(name, table, groups, Path(source).parent)
    if not (groups := groups | new):
        raise InputError(
            f"{source}: no groups in this file. A catalogue has tables such "
            'as [groups.mass.parameters.scale], or extends = "paper"'
        )
    return Catalogue(tuple(groups.values()))


def _read_group(
    name: str, table: Any, extended: Mapping[str, Group], folder: Path
) -> Group:
    """Read a group's table; what it leaves out stays as in the group it extends."""
    _expect_name(name)
    expect_table(table, ("about", "parameters"))
    old = extended.get(name)
    parameters = {p.name: p for p in old.parameters} if old else {}
    with inside("parameters"):
        tables = expect_table(table.get("parameters", {}))
    for key, value in tables.items():
        with inside("parameters", key):
            _expect_name(key)
            changes = _read_changes(value, folder)
            missing = [k for k in ("baseline", "limit") if k not in changes]
            if missing and key not in parameters:
                # Half a parameter is a misspelt one more often than a new one.
                hint = f"{' and '.join(missing)} missing for a new parameter"
                if parameters:
                    hint = f"{unknown('parameter', key, parameters)}; or {hint}"
                elif extended:
                    hint = f"{unknown('group', name, extended)}; or {hint}"
                raise FieldError(hint)
            known = vars(parameters[key]) if key in parameters else {"name": key}
            parameters[key] = decode_value(Parameter, known | changes)
    read = {"name": name, "about": table.get("about", old.about if old else "")}
    return decode_value(Group, read | {"parameters": tuple(parameters.values())})


def _read_changes(table: Any, folder: Path) -> dict[str, Any]:
    """Read what a parameter's table states; files of effects are beside its own."""
    changes = dict(expect_table(table, PARAMETER_KEYS))
    for key in ("baseline", "limit"):
        if key in changes:
            with inside(key):
                changes[key] = _read_range(changes[key])
    if "effect" in changes:
        with inside("effect"):
            value = changes["effect"]
            place, colon, name = decode_value(str, value).rpartition(":")
            if not (colon and place and name.isidentifier()):
                raise FieldError(
                    f"{value!r} is not of the form FILE.py:NAME, MODULE:NAME"
                )
            if place.endswith(".py"):
                changes["effect"] = f"{(folder / place).resolve()}:{name}"
    return changes


def _read_range(ends: Any) -> Range:
    numbers = isinstance(ends, list) and all(type(x) in (int, float) for x in ends)
    if not (numbers and len(ends) == 2):
        raise FieldError(f"{ends!r} is not a range: write [low, high]")
    return Range(float(ends[0]), float(ends[1]))


def _expect_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise FieldError("names consist of letters, digits, '_' and '-'")
