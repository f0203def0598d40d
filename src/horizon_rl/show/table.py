"""A table as a value; a terminal, Markdown and a page render the same one."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

Item = TypeVar("Item")
LONG = 16
"""Characters beyond which a heading is the name of something, and may be broken."""
BAR_WIDTH = 8


@dataclass(frozen=True)
class Cell:
    """Text with a highlight."""

    text: str
    style: str = ""
    """As rich names it: bold, dim, red. Markdown and the page know only bold."""
    share: float | None = None
    """A share in [0, 1] that a terminal draws as a bar before the text."""


@dataclass(frozen=True)
class Table:
    """Rows of text under headings."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str | Cell, ...], ...]
    """A row may be shorter than the headings; an empty one separates."""
    notes: tuple[str, ...] = ()
    align: str = "lr"
    """A letter for each column, l or r; the last one stands for all that follow."""
    name_width: int = 0
    """Characters to break names in the first column at, in a terminal; 0 is no limit."""

    def is_left(self, column: int) -> bool:
        return self.align[min(column, len(self.align) - 1)] == "l"


def tabulate(
    title: str,
    items: Iterable[Item],
    columns: Sequence[tuple[str, Callable[[Item], str | Cell]]],
    notes: Sequence[str] = (),
    **layout: Any,
) -> Table:
    """Lay out items, a row each; a column is a heading and what to write of an item."""
    rows = tuple(tuple(write(item) for _, write in columns) for item in items)
    headings = tuple(heading for heading, _ in columns)
    return Table(title, headings, rows, tuple(notes), **layout)


def bar(share: float, width: int = BAR_WIDTH) -> Text:
    """Draw a share in [0, 1] as a bar, to an eighth of a cell."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    filled = "█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")
    return Text(filled.ljust(width, "·"), style="cyan")


def to_rich(table: Table) -> RichTable:
    """Lay out headings and rows for a terminal of 80 columns."""
    gap = 2 if len(table.headings) < 7 else 1
    rich = RichTable(
        box=None,
        padding=(0, gap, 0, 0),
        pad_edge=False,
        header_style="bold",
        show_header=any(table.headings),
    )
    for k, heading in enumerate(table.headings):
        is_left = table.is_left(k)
        rich.add_column(
            Text(heading),
            justify="left" if is_left else "right",
            overflow="fold",
            no_wrap=not is_left and len(max(heading.split("\n"), key=len)) <= LONG,
        )
    for row in table.rows:
        cells = list(map(_to_text, row))
        if table.name_width and row:
            # After a hyphen: rich knows only spaces.
            cells[0] = Text("\n".join(wrap(cells[0].plain, table.name_width)))
        rich.add_row(*cells)
    return rich


def print_table(console: Console, table: Table) -> None:
    """Print a table with its title above and its notes below."""
    if table.title:
        console.print(Text(table.title, "bold"))
    console.print(to_rich(table))
    for note in table.notes:
        # Not wrapped: it may name a path, which is there to be copied.
        console.print(Text(note, "dim"), soft_wrap=True)
    console.print()


def to_markdown(table: Table) -> str:
    """Lay out a table as Markdown."""
    rules = ("---" if table.is_left(k) else "---:" for k in range(len(table.headings)))
    lines = [
        f"**{table.title}**\n",
        _markdown_row(table.headings),
        f"|{'|'.join(rules)}|",
        *map(_markdown_row, table.rows),
        *(["", "\n".join(table.notes)] if table.notes else []),
    ]
    return "\n".join(lines) + "\n"


def _to_text(cell: str | Cell) -> Text:
    if isinstance(cell, str):
        return Text(cell)
    text = Text(cell.text, style=cell.style)
    return text if cell.share is None else Text.assemble(bar(cell.share), " ", text)


def _markdown_row(cells: Iterable[str | Cell]) -> str:
    texts = []
    for cell in cells:
        text = cell if isinstance(cell, str) else cell.text
        text = text.replace("|", "\\|").replace("\n", " ")
        is_bold = isinstance(cell, Cell) and cell.style == "bold"
        texts.append(f"**{text}**" if is_bold else text)
    return f"| {' | '.join(texts)} |"
