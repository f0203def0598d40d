"""A grid while it runs: which runs are under way, how far, and until when."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.text import Text

from horizon_rl.runs.summary import RunSummary
from horizon_rl.show.numbers import NONE, show_count, show_duration, show_number
from horizon_rl.show.table import Cell, FittedTable, tabulate

MOST_ROWS = 30
"""Runs under way that a board lists."""


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

    def of(name: str) -> RunSummary | None:
        return summaries.get(name)

    table = tabulate(
        "",
        names[:MOST_ROWS],
        (
            ("run", lambda name: Cell(name, "bold")),
            ("phase", lambda name: _phase(of(name))),
            ("done", lambda name: _share(of(name))),
            ("frontier", lambda name: _level(of(name))),
            ("steps/s", lambda name: _speed(of(name))),
            ("left", lambda name: _left(of(name))),
            ("on", lambda name: progress.nodes[name]),
        ),
        align="lrrrrrl",
    )
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


def _phase(summary: RunSummary | None) -> str:
    return NONE if summary is None else str(summary.phases)


def _share(summary: RunSummary | None) -> str | Cell:
    if summary is None or summary.budget is None:
        return NONE
    share = min(1.0, summary.budget.share)
    return Cell(f"{share:.0%}", share=share)


def _level(summary: RunSummary | None) -> str:
    return NONE if summary is None else f"{summary.difficulty:.2f}"


def _speed(summary: RunSummary | None) -> str:
    progress = summary.progress if summary else None
    return show_number(progress.steps_per_s if progress else None, ",.0f")


def _left_steps(summary: RunSummary) -> int:
    steps = summary.budget.steps if summary.budget else None
    return max(0, (steps or 0) - summary.env_steps)


def _left(summary: RunSummary | None) -> str:
    speed = summary.progress.steps_per_s if summary and summary.progress else None
    left = _left_steps(summary) if summary else 0
    if not speed or not left:
        return NONE if not left else show_count(left) + " steps"
    return show_duration(left / speed)
