"""A grid while it runs: which runs are under way, how far, and until when."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.text import Text

from horizon_rl.runs.summary import RunSummary
from horizon_rl.show.numbers import NONE, show_count, show_duration, show_number
from horizon_rl.show.table import Cell, FittedTable, Table

MOST_ROWS = 30
"""Runs under way that a board lists."""
COLUMNS = ("run", "phase", "done", "frontier", "steps/s", "left", "on")


@dataclass
class GridProgress:
    """What is known of a grid's runs."""

    total: int
    done: int = 0
    """Runs that were done before, or are now."""
    failed: dict[str, str] = field(default_factory=dict)
    """Reasons by run."""
    nodes: dict[str, str] = field(default_factory=dict)
    """Where the runs under way are."""
    deaths: int = 0
    """Runs that died and went on."""
    left_steps: int = 0
    """Env steps of runs that have not begun."""
    began: float = field(default_factory=time.monotonic)


def grid_board(
    progress: GridProgress, summaries: Mapping[str, RunSummary | None]
) -> RenderableType:
    """Lay out the runs under way, and the whole below them."""
    names = list(progress.nodes)
    rows = (
        _row(name, summaries.get(name), progress.nodes[name])
        for name in names[:MOST_ROWS]
    )
    table = Table("", COLUMNS, tuple(rows), align="lrrrrrl")
    more = [Text(f"and {len(names) - MOST_ROWS} more")] * (len(names) > MOST_ROWS)
    return Group(FittedTable(table), *more, Text(progress_line(progress, summaries)))


def progress_line(
    progress: GridProgress, summaries: Mapping[str, RunSummary | None]
) -> str:
    """Say in a line how far the grid is."""
    parts = [f"{progress.done} of {progress.total} runs done"]
    parts += [f"{len(progress.nodes)} under way"]
    parts += [f"{len(progress.failed)} failed"] * bool(progress.failed)
    parts += [f"{progress.deaths} died and went on"] * bool(progress.deaths)
    known = [s for name in progress.nodes if (s := summaries.get(name))]
    left = progress.left_steps + sum(map(_left_steps, known))
    speed = sum(s.progress.steps_per_s or 0.0 for s in known if s.progress)
    if speed and left:
        parts.append(f"about {show_duration(left / speed)} left")
    elapsed = show_duration(time.monotonic() - progress.began)
    return f"{', '.join(parts)}; {elapsed} so far"


def _row(name: str, summary: RunSummary | None, node: str) -> tuple[str | Cell, ...]:
    run = Cell(name, "bold")
    if summary is None:
        return run, *[NONE] * 5, node
    share = min(1.0, summary.budget.share) if summary.budget else None
    speed = summary.progress.steps_per_s if summary.progress else None
    left = _left_steps(summary)
    rest = show_duration(left / speed) if speed else show_count(left) + " steps"
    return (
        run,
        str(summary.phases),
        NONE if share is None else Cell(f"{share:.0%}", share=share),
        f"{summary.difficulty:.2f}",
        show_number(speed, ",.0f"),
        rest if left else NONE,
        node,
    )


def _left_steps(summary: RunSummary) -> int:
    steps = summary.budget.steps if summary.budget else None
    return max(0, (steps or 0) - summary.env_steps)
