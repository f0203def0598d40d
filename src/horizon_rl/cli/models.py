"""`horizon models`: the policies that come with the package."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from horizon_rl.cli.common import Terminal, print_json
from horizon_rl.cli.domains import describe, domains_table
from horizon_rl.policies.shipped import (
    ModelRecord,
    model_names,
    model_path,
    read_model,
    trained_levels,
)
from horizon_rl.show.numbers import show_count
from horizon_rl.show.table import Cell, Table
from horizon_rl.support.records import encode


@dataclass(frozen=True, kw_only=True)
class ModelsCmd:
    """List the policies that come with the package, with what each was measured to do.

    Their names stand for checkpoints: horizon eval base, horizon train --init base.
    """

    name: Annotated[
        str | None,
        tyro.conf.Positional,
        tyro.conf.arg(metavar="[NAME]", help_behavior_hint=""),
    ] = None
    """One of them, as a sheet: how it was trained, the ranges of physics that it
    mastered, and its success in every column that it was evaluated on."""
    json: bool = False
    """Print everything on record as JSON."""


def run(cmd: ModelsCmd) -> None:
    names = (cmd.name,) if cmd.name else model_names()
    models = {name: read_model(name) for name in names}
    if cmd.json:
        print_json(
            {k: {**encode(m), "path": str(model_path(k))} for k, m in models.items()}
        )
        return
    if cmd.name:
        for table in _sheet(cmd.name, models[cmd.name]):
            Terminal().print_table(table)
        return
    rows: list[tuple[str | Cell, ...]] = []
    for name, model in models.items():
        rows += [(), (name, model.about, f"{model.env_steps / 1e6:.0f} M")]
        rows += [("", Cell(line, "dim")) for line in _highlights(model.results)]
    table = Table("Models", ("name", "about", "env steps"), tuple(rows), align="llr")
    Terminal().print_table(table)


def _sheet(name: str, model: ModelRecord) -> Iterator[Table]:
    """Say how a policy was made, in which ranges of physics, and what it can do there."""
    shown = ("about", "command", "commit", "hardware", "env_steps", "minutes", "seed")
    facts = encode(model) | {"env_steps": show_count(model.env_steps)}
    rows = tuple((key.replace("_", " "), str(facts[key])) for key in shown)
    yield Table(name, ("what", ""), rows, align="l")
    catalogue, levels = trained_levels(name)
    ranges = describe(catalogue, levels)
    for group in ranges["groups"].values():
        for parameter in group["parameters"].values():
            parameter["range"] = [float(f"{x:.3g}") for x in parameter["range"]]
    yield domains_table(ranges, "Ranges that it mastered")
    for result in model.results:
        suite, draw = result["suite"], result["suite"].get("draw", "dev")
        at = "" if suite["severity"] is None else f" at severity {suite['severity']:g}"
        columns = [
            (
                column,
                f"{100.0 * found['success']:.1f}",
                str(found["episodes"]),
                f"{found['tracking_error']:.2f}",
            )
            for column, found in result["columns"].items()
        ]
        headings = ("column", "success, %", "episodes", "error, m/s")
        yield Table(f"Suite {suite['name']}{at} ({draw})", headings, tuple(columns))


def _highlights(results: Sequence[dict[str, Any]]) -> list[str]:
    """Say in a line for each suite how often the policy succeeds."""
    from horizon_rl.show.glance import summarize  # It takes a simulator to import.

    lines: dict[str, list[str]] = {}
    has_curve = any("curve" in result for result in results)
    for result in results:
        if has_curve and "all" in result["columns"]:
            continue  # The curve has it of more scenarios.
        suite = result["suite"]
        name = f"{suite['name']} ({suite.get('draw', 'dev')})"
        at = "" if suite["severity"] is None else f" at {suite['severity']:g}"
        for what, share in summarize(result).items():
            lines.setdefault(f"{name}, {what}", []).append(f"{100.0 * share:.1f} %{at}")
    return [f"{name}: {', '.join(parts)}" for name, parts in lines.items()]
