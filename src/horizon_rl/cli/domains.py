"""`horizon domains`: what the curriculum can widen, and how far it is at a level."""

from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from horizon_rl.cli.common import CatalogueFlag, Terminal, print_json, read_catalogue
from horizon_rl.domains import Catalogue, Levels, Range
from horizon_rl.show.table import Cell, Table

PLAIN = ("unit", "draws", "mass_power", "length_power", "about")


@dataclass(frozen=True, kw_only=True)
class DomainsCmd:
    """Show the domain groups: baseline, limit, range at a level, coverage."""

    level: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """Level of a group, as in `--level actuation=0.5`; repeat it, or `all=0.5`."""
    catalogue: CatalogueFlag = None
    json: bool = False
    """Print JSON instead of a table."""


def run(cmd: DomainsCmd) -> None:
    catalogue = read_catalogue(cmd.catalogue)
    levels = catalogue.parse_levels(",".join(cmd.level))
    data = describe(catalogue, levels)
    if cmd.json:
        print_json(data)
    else:
        Terminal().print_table(domains_table(data))


def describe(catalogue: Catalogue, levels: Levels) -> dict[str, Any]:
    """Return the catalogue at `levels` as plain data: the `--json` interface."""
    groups = {}
    for group in catalogue.groups:
        level = levels.get(group.name, 0.0)
        parameters = {
            p.name: {
                "baseline": [p.baseline.low, p.baseline.high],
                "limit": [p.limit.low, p.limit.high],
                "range": [p.range_at(level).low, p.range_at(level).high],
                "coverage": p.coverage_at(level),
                **{key: getattr(p, key) for key in PLAIN},
            }
            for p in group.parameters
        }
        groups[group.name] = {
            "level": level,
            "coverage": group.coverage_at(level),
            "about": group.about,
            "parameters": parameters,
        }
    return {"groups": groups}


def domains_table(data: dict[str, Any], title: str = "Domain groups") -> Table:
    """Lay out what `describe` returns."""
    rows: list[tuple[str | Cell, ...]] = []
    for name, group in data["groups"].items():
        heading = Cell(f"{name} at level {group['level']:g}", "bold")
        covered = Cell(f"{group['coverage']:.1%}", "bold")
        rows += [(), (heading, "", "", "", covered)]
        for key, parameter in group["parameters"].items():
            label = f"  {key}" + (f", {parameter['unit']}" if parameter["unit"] else "")
            ranges = (str(Range(*parameter[k])) for k in ("baseline", "range", "limit"))
            rows.append((label, *ranges, f"{parameter['coverage']:.1%}"))
    headings = ("parameter", "baseline", "at level", "limit", "coverage")
    return Table(title, headings, tuple(rows))
