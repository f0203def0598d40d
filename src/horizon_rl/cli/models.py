"""`horizon models`: the policies that come with the package."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.table import Table

from horizon_rl.cli.common import Terminal, print_json
from horizon_rl.models import model_names, model_path, read_model
from horizon_rl.records import encode


@dataclass(frozen=True, kw_only=True)
class ModelsCmd:
    """List the policies that come with the package, with what each was measured to do.

    Their names stand for checkpoints: horizon eval base, horizon train --init base.
    """

    json: bool = False
    """Print everything on record as JSON."""


def run(cmd: ModelsCmd) -> None:
    models = {name: read_model(name) for name in model_names()}
    if cmd.json:
        print_json(
            {k: {**encode(m), "path": str(model_path(k))} for k, m in models.items()}
        )
        return
    table = Table(title="Models", title_justify="left", box=box.SIMPLE_HEAD)
    for heading in ("name", "about"):
        table.add_column(heading)
    for heading in ("env steps", "GPU minutes", "success"):
        table.add_column(heading, justify="right")
    for name, model in models.items():
        table.add_row(
            name,
            f"{model.about}\n[dim]{model.hardware}, commit {model.commit}, "
            f"seed {model.seed}[/]",
            f"{model.env_steps / 1e6:.0f} M",
            f"{model.minutes:.1f}",
            "\n".join(_highlights(model.results)),
        )
    Terminal().print(table)


def _highlights(results: Sequence[dict[str, Any]]) -> list[str]:
    """Pick a line for each suite: its column `all`, else its columns' mean."""
    lines = []
    for result in results:
        suite, columns = result["suite"], result["columns"]
        shares = [column["success"] for column in columns.values()]
        share = (
            columns["all"]["success"] if "all" in columns else sum(shares) / len(shares)
        )
        what = "all" if "all" in columns else "mean"
        at = "" if suite["severity"] is None else f" at {suite['severity']:g}"
        lines.append(f"{suite['name']} {what}{at}: {100.0 * share:.1f} %")
    return lines
