"""What a page consists of, as values: sections of drawings, tables, facts and notes."""

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from horizon_rl.show.report.svg import figure_svg
from horizon_rl.show.table import Cells

LONGEST = 60
"""Characters of a name: a path may be longer than a file's name can be."""


def slug(text: str) -> str:
    """Turn a name, wherever it comes from, into part of a file's name and of an id."""
    clean = re.sub(r"[^\w.+-]+", "-", text)
    if len(clean) <= LONGEST:
        return clean
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{clean[: LONGEST - 9]}-{digest}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawing:
    """A figure, with the words that stand below it."""

    name: str
    """Name of its files, and of its place on the page."""
    about: str
    figure: Any
    """matplotlib's."""

    @cached_property
    def svg(self) -> str:
        """As an element for a page, which is also a file of its own."""
        return figure_svg(self.figure, self.name, self.about)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """A few numbers worth a larger type."""

    title: str
    subtitle: str = ""
    pairs: tuple[tuple[str, str], ...] = ()
    """Value, and what it is."""
    share: float | None = None
    """How far something is, as a bar."""


@dataclass(frozen=True)
class Prose:
    """A paragraph."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Missing:
    """What is not at hand, and the commands that would bring it."""

    what: str
    commands: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Commands:
    """Lines for a shell."""

    lines: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Fold:
    """Blocks behind a title that opens and closes."""

    title: str
    blocks: "tuple[Block, ...]"
    is_open: bool = False


Block = Drawing | Cells | Facts | Prose | Missing | Commands | Fold


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page with a heading and a place to link to."""

    id: str
    title: str
    intro: str = ""
    blocks: tuple[Block, ...] = ()


def drawings(blocks: tuple[Block, ...]) -> list[Drawing]:
    """Return all drawings among blocks, also inside folds."""
    found = []
    for block in blocks:
        if isinstance(block, Drawing):
            found.append(block)
        elif isinstance(block, Fold):
            found += drawings(block.blocks)
    return found
