"""Read a catalogue from a TOML file, and say which line of a bad one is at fault."""

import re
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

from horizon_rl.domains.catalogue import Catalogue, Group
from horizon_rl.domains.parameter import Parameter, Range
from horizon_rl.support.bounds import MAX_DRAWS
from horizon_rl.support.errors import InputError, guess, require, unknown
from horizon_rl.support.reading import read_text
from horizon_rl.support.records import FieldError, decode_value, inside
from horizon_rl.support.toml_text import toml_tables

Shipped = Literal["paper", "extended"]
"""Catalogues that come with the package: the paper's, and one with more groups."""
SHIPPED = get_args(Shipped)


@dataclass(frozen=True)
class GroupTable:
    """[groups.NAME]; what it leaves out stays as in the group it extends."""

    about: str | None = None
    parameters: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Fields of a `Parameter`, those that differ from the extended one's."""


@dataclass(frozen=True)
class CatalogueTable:
    """A file as it is written."""

    extends: Shipped | None = None
    groups: dict[str, GroupTable] = field(default_factory=dict)


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
        text = read_text(Path(source))
    except InputError as error:
        raise InputError(
            f"cannot read catalogue {source}: {error}"
            f"{guess(str(source), SHIPPED)} Accepted: {', '.join(SHIPPED)}, or a TOML file"
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
        table = decode_value(CatalogueTable, data)
        if table.extends:
            groups = {
                group.name: group for group in shipped_catalogue(table.extends).groups
            }
        known = list(Catalogue(tuple(groups.values())).parameters)
        for name, group in table.groups.items():
            with inside("groups", name):
                old = groups.get(name)
                groups[name] = _read_group(name, group, old, known, Path(source).parent)
    if not groups:
        raise InputError(
            f"{source}: no groups in this file. A catalogue has tables such "
            'as [groups.mass.parameters.scale], or extends = "paper"'
        )
    catalogue = Catalogue(tuple(groups.values()))
    draws = sum(p.draws for p in catalogue.parameters.values())
    require(f"{source}: the number of draws of all parameters", draws, 1, MAX_DRAWS)
    return catalogue


def _read_group(
    name: str, table: GroupTable, old: Group | None, known: list[str], folder: Path
) -> Group:
    """Read a group's table; `known` are the parameters that the file extends."""
    parameters = {p.name: p for p in old.parameters} if old else {}
    for key, changes in table.parameters.items():
        with inside("parameters", key):
            if key not in parameters and not {"baseline", "limit"} <= set(changes):
                # Half a parameter is a misspelt one more often than a new one.
                hint = f"a new one needs baseline and limit, found {', '.join(changes)}"
                raise FieldError(
                    f"{unknown('parameter', f'{name}.{key}', known)}; {hint}"
                )
            parameters[key] = _read_parameter(key, changes, parameters.get(key), folder)
    for word in (name, *table.parameters):
        if not re.fullmatch(r"[A-Za-z0-9_-]+", word):
            raise FieldError("names consist of letters, digits, '_' and '-'")
    about = table.about if table.about is not None else old.about if old else ""
    return Group(name=name, about=about, parameters=tuple(parameters.values()))


def _read_parameter(
    name: str, changes: dict[str, Any], old: Parameter | None, folder: Path
) -> Parameter:
    """Read a parameter's table; a file of effects is found beside the catalogue's."""
    ranges = {}
    for key in {"baseline", "limit"} & set(changes):
        with inside(key):
            ranges[key] = Range(*decode_value(tuple[float, float], changes[key]))
    same = {} if old is None else vars(old)
    read = decode_value(Parameter, {**same, **changes, **ranges, "name": name})
    place, _, code = read.effect.rpartition(":")
    if "effect" in changes and place.endswith(".py"):
        return replace(read, effect=f"{(folder / place).resolve()}:{code}")
    return read
