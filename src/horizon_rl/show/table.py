"""A table as a value; a terminal, Markdown and a page render the same one."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any, TypeVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

Item = TypeVar("Item")
LONG = 16
"""Characters beyond which a heading is the name of something, and may be broken."""
BAR_WIDTH = 8
MAX_WORD = 24
"""Characters beyond which a word may be broken where the terminal is narrow."""
MAX_GAP = 2
"""Blanks between columns where there are few of them."""


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
    keys: int = 1
    """Columns that say what a row is about."""

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


def bold_rows(table: Table, number: int) -> Table:
    """Make the best of every row bold, among this many columns after the first."""
    rows = (
        (row[0], *_bold_best(row[1 : number + 1]), *row[number + 1 :])
        for row in table.rows
    )
    return replace(table, rows=tuple(rows))


def bold_columns(table: Table, *, skip: int = 1, lowest: Sequence[str] = ()) -> Table:
    """Make the best of every column bold.

    Args:
        table: Of numbers.
        skip: First columns that are left as they are.
        lowest: Headings of columns whose lowest number is the best.
    """
    columns = list(zip(*table.rows, strict=True))
    best = (
        _bold_best(column, min if heading in lowest else max)
        for heading, column in zip(table.headings[skip:], columns[skip:], strict=True)
    )
    rows = zip(*columns[:skip], *best, strict=True)
    return replace(table, rows=tuple(rows))


def _bold_best(
    cells: Sequence[str | Cell], best: Callable[[Iterable[float]], float] = max
) -> Sequence[str | Cell]:
    """Make the cells bold that begin with the best number, if several have one."""
    numbers = [_first_number(cell) for cell in cells]
    known = [number for number in numbers if number is not None]
    if len(known) < 2:
        return cells
    wanted = best(known)
    return [
        Cell(_text(cell), "bold") if number == wanted else cell
        for cell, number in zip(cells, numbers, strict=True)
    ]


def _text(cell: str | Cell) -> str:
    return cell.text if isinstance(cell, Cell) else cell


def _first_number(cell: str | Cell) -> float | None:
    first = _text(cell).split(" ")[0]
    return float(first) if first.replace(".", "", 1).isdigit() else None


def bar(share: float, width: int = BAR_WIDTH) -> Text:
    """Draw a share in [0, 1] as a bar, to an eighth of a cell."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    filled = "█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")
    return Text(filled.ljust(width, "·"), style="cyan")


def fit(table: Table, width: int) -> list[Table]:
    """Break a table that a terminal is too narrow for into several, side by side.

    Each has the columns that say what a row is about.
    """
    keys = table.keys
    widths = [_least_width(table, k) for k in range(len(table.headings))]
    if sum(widths) + _gap(table) * (len(widths) - 1) <= width:
        return [table]
    parts: list[list[int]] = []
    room = 0
    for k, own in enumerate(widths[keys:], start=keys):
        if not parts or room < own + MAX_GAP:
            parts.append([*range(keys)])
            room = width - sum(widths[:keys]) - MAX_GAP * (keys - 1)
        parts[-1].append(k)
        room -= own + MAX_GAP
    return [
        replace(
            table,
            headings=tuple(table.headings[k] for k in part),
            rows=tuple(tuple(r[k] for k in part if k < len(r)) for r in table.rows),
            align="".join("l" if table.is_left(k) else "r" for k in part),
        )
        for part in parts
    ]


def _least_width(table: Table, column: int) -> int:
    """Return the width below which a column would lose characters."""
    heading, is_left = table.headings[column], table.is_left(column)
    cells = [row[column] for row in table.rows if column < len(row)]
    texts = [_to_text(cell).plain for cell in cells]
    if any(isinstance(cell, Cell) and cell.share is not None for cell in cells):
        return max(map(len, (heading, *texts)))  # A bar and its number stay together.
    if table.name_width and column == 0:
        texts = [line for text in texts for line in wrap(text, table.name_width)]
    # Some may be broken: text between words, a long name anywhere.
    words = [word[:MAX_WORD] for word in heading.split()]
    texts += words if _is_long(heading) else [heading]
    lines = [line for text in texts for line in text.split("\n")]
    if is_left:
        # An indentation stays with every word.
        lines = [
            " " * (len(line) - len(line.lstrip())) + word
            for line in lines
            for word in line.split()
        ]
    longest = max(map(len, lines), default=0)
    # A path, say, is broken rather than a table.
    return min(longest, MAX_WORD) if is_left else longest


def _is_long(heading: str) -> bool:
    return max(map(len, heading.split("\n"))) > LONG


def _gap(table: Table) -> int:
    return MAX_GAP if len(table.headings) < 7 else 1


@dataclass(frozen=True)
class FittedTable:
    """A table as rich draws it, in several parts where the terminal is narrow."""

    table: Table

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        for number, part in enumerate(fit(self.table, options.max_width)):
            yield from [Text()] * bool(number)
            yield to_rich(part, options.max_width)


def to_rich(table: Table, width: int) -> RichTable:
    """Lay out headings and rows for a terminal, in which they fit."""
    gap, columns = _gap(table), range(len(table.headings))
    rich = RichTable(
        box=None,
        padding=(0, gap, 0, 0),
        pad_edge=False,
        header_style="bold",
        show_header=any(table.headings),
    )
    rows = [list(map(_to_text, row)) for row in table.rows]
    for cells in rows:
        if table.name_width and cells:
            # After a hyphen: rich knows only spaces.
            cells[0] = Text("\n".join(wrap(cells[0].plain, table.name_width)))
    least = [_least_width(table, k) for k in columns]
    widths = [
        max(
            len(line)
            for text in (table.headings[k], *(r[k].plain for r in rows if k < len(r)))
            for line in text.split("\n")
        )
        for k in columns
    ]
    for _ in range(sum(widths) + gap * (len(widths) - 1) - width):
        # What has most to spare gives way.
        spare = [w - low for w, low in zip(widths, least, strict=True)]
        widths[spare.index(max(spare))] -= 1
    for k, heading in enumerate(table.headings):
        rich.add_column(
            Text(heading),
            justify="left" if table.is_left(k) else "right",
            overflow="fold",
            no_wrap=not table.is_left(k) and not _is_long(heading),
            width=max(widths[k], 1),
        )
    for cells in rows:
        rich.add_row(*cells)
    return rich


def holds_path(text: str) -> bool:
    """Tell whether a text holds a path, which is there to be copied: it is not wrapped."""
    return any(
        "/" in word and len(word.strip(".,:;()")) > len("rad/s")
        for word in text.split()
    )


def print_table(console: Console, table: Table) -> None:
    """Print a table with its title above and its notes below."""
    if table.title:
        console.print(Text(table.title, "bold"))
    console.print(FittedTable(table))
    for note in table.notes:
        console.print(Text(note, "dim"), soft_wrap=holds_path(note))
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
