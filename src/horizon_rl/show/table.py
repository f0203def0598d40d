"""Tables as text, for the terminal or as Markdown for a page of results."""

from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from horizon_rl.evaluation.statistics import Spread

NONE = "-"


@dataclass(frozen=True)
class Cells:
    """A table as text; the first column is a name, the others are numbers."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def print_cells(console: Console, cells: Cells) -> None:
    """Print a table for a terminal of 80 columns, its title above and notes below."""
    headings = list(cells.headings)
    gap = 2 if len(headings) < 8 else 1
    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="bold")
    table.add_column(headings[0], overflow="fold")
    for heading in headings[1:]:
        table.add_column(escape(heading), justify="right", no_wrap=True)
    for row in cells.rows:
        table.add_row(*map(escape, row))
    console.print(f"[bold]{escape(cells.title)}[/]", highlight=False, soft_wrap=True)
    console.print(table)
    for note in cells.notes:
        console.print(note, style="dim", markup=False, highlight=False, soft_wrap=True)
    console.print()


def as_markdown(cells: Cells) -> str:
    """Lay a table out as Markdown."""
    lines = [
        f"**{cells.title}**\n",
        _markdown_row(cells.headings),
        f"|---|{'---:|' * (len(cells.headings) - 1)}",
        *map(_markdown_row, cells.rows),
        *(["", "\n".join(cells.notes)] if cells.notes else []),
    ]
    return "\n".join(lines) + "\n"


def _markdown_row(cells: Iterable[str]) -> str:
    escaped = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def show_spread(
    spread: Spread | None, scale: float = 1.0, *, digits: int | None = None
) -> str:
    """Print mean ± standard deviation; counts, without `digits`, whole where they are."""
    if spread is None:
        return NONE
    if digits is None:
        digits = 0 if scale == 1.0 and spread.seeds == 1 else 1
    mean = f"{scale * spread.mean:.{digits}f}"
    return mean if spread.sd is None else f"{mean} ± {scale * spread.sd:.{digits}f}"


def show_number(value: float | None, form: str) -> str:
    return NONE if value is None else format(value, form)
