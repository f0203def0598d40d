"""`horizon diagnose`: did the gates of past runs foretell progress?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import tyro
from rich.table import Table

from horizon_rl.cli.common import Terminal, find_journals, print_json
from horizon_rl.runs.journal import replay
from horizon_rl.support.errors import InputError, needs_extra
from horizon_rl.support.records import encode

CLASSES = {
    "full pass": "full gate pass",
    "checkpoint fail": "length, tracking pass;\ncheckpoint fail",
    "tracking fail": "length pass;\ntracking fail",
    "low length": "low episode length",
}
REASONS = {
    "baseline": "at the baseline, before any frontier",
    "clock": "by the clock, whatever the gates said",
    "no_rollback": "without rollback, where failed levels count as mastered",
}


@dataclass(frozen=True, kw_only=True)
class DiagnoseCmd:
    """Ask past runs whether their gates foretold progress: the paper's diagnostic."""

    runs: Annotated[
        tuple[str, ...],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="RUN...", help_behavior_hint=""),
    ]
    """Directories of curriculum runs, their journals, or shipped policies that came of
    one; all are pooled."""
    horizon: int = 3
    """Decisions ahead over which the gain of difficulty is taken."""
    json: bool = False
    """Print JSON instead of a table."""


def run(cmd: DiagnoseCmd) -> None:
    with needs_extra("train"):
        from horizon_rl.evaluation.studies.diagnostic import diagnose
    if cmd.horizon < 1:
        raise InputError(f"--horizon is {cmd.horizon}; accepted: at least 1")
    journals = find_journals(cmd.runs)
    data = encode(diagnose([replay(path) for path in journals], horizon=cmd.horizon))
    if cmd.json:
        print_json(data)
        return
    Terminal().print(_table(data))
    print(_notes(data))


def _table(data: Mapping[str, Any]) -> Table:
    count = sum(row["phases"] for row in data["rows"])
    table = Table(
        title=f"{count} frontier phases of {data['runs']} run(s)",
        title_justify="left",
        # Little padding: all of it must fit a terminal of 80 columns.
        box=None,
        padding=(0, 2, 0, 0),
        pad_edge=False,
        header_style="bold",
    )
    table.add_column("class", no_wrap=True)
    headings = ("phases", "episode\nfraction", "checkpoint\nreturn ratio")
    for heading in (*headings, "frontier\ngain", "improvement\nrate"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in data["rows"]:
        table.add_row(
            CLASSES[row["outcome"]],
            str(row["phases"]),
            _show(row["length"], ".3f"),
            _show(row["checkpoint_ratio"], ".3f"),
            _show(row["gain"], "+.4f"),
            _show(row["improvement_rate"], ".1%"),
        )
    return table


def _notes(data: Mapping[str, Any]) -> str:
    ahead = "decision" if data["horizon"] == 1 else f"{data['horizon']} decisions"
    known = sum(row["phases_with_gain"] for row in data["rows"])
    lines = [
        f"\nGain: change of difficulty over the next {ahead}, on record for {known} of",
        "these phases. Improvement rate: the share of them with a gain above 0.",
        "Spearman correlation with the gain:",
        f"  episode fraction  {_correlation(data['length_correlation'])}",
        f"  composite score   {_correlation(data['score_correlation'])}",
    ]
    for reason, number in data["left_out"].items():
        if number:
            lines.append(f"Phases left out: {number} {REASONS[reason]}.")
    return "\n".join(lines)


def _correlation(data: Mapping[str, Any]) -> str:
    return f"{_show(data['rho'], '.2f')} ({data['phases']} phases)"


def _show(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
