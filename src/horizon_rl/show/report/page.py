"""Sections as HTML, and the page around them: one file that needs nothing else."""

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files

from horizon_rl import __version__
from horizon_rl.show.report.blocks import (
    Block,
    Commands,
    Drawing,
    Facts,
    Fold,
    Missing,
    Prose,
    Section,
)
from horizon_rl.show.report.markup import Html, tag
from horizon_rl.show.table import Cells

GENERATOR = "horizon-rl"
"""By this a page of ours is known from another that it must not replace."""
ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Cpath d='M1 12h14M4 12a4 4 0 0 1 8 0' fill='none' stroke='%231f5fa8' "
    "stroke-width='2'/%3E%3C/svg%3E"
)
WIDE = 8.0
"""Width in inches beyond which a figure scrolls on a phone instead of shrinking."""
FIGURES = "figures"
"""Folder beside the page that has its figures as files."""
WORDS = ("reason", "value")
"""Last columns that hold words."""


@dataclass(frozen=True)
class RenderedSection:
    """A section as HTML, known by a hash of it."""

    id: str
    title: str
    html: Html

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.html.encode()).hexdigest()[:16]


def render_section(section: Section, *, downloads: bool = False) -> RenderedSection:
    """Write a section; with `downloads`, its figures link to files beside the page."""

    def show(block: Block) -> Html:
        return _block(block, show, downloads)

    html = tag(
        "section",
        tag("h2", tag("a", section.title, href=f"#{section.id}")),
        _paragraph(section.intro) if section.intro else None,
        *map(show, section.blocks),
        id=section.id,
    )
    return RenderedSection(section.id, section.title, html)


def render_page(
    title: str,
    subtitle: str,
    sections: Sequence[RenderedSection],
    *,
    is_live: bool = False,
) -> str:
    """Put the page together; a live one brings the script that keeps it so."""
    links = [
        tag("li", tag("a", section.title, href=f"#{section.id}"))
        for section in sections
    ]
    marked = [
        # So that the script can tell which sections have changed.
        Html(s.html.replace("<section", f'<section data-digest="{s.digest}"', 1))
        for s in sections
    ]
    silent = tag(
        "p", "The server does not answer.", id="silent", class_="alert", hidden=True
    )
    policy = content_policy(is_live=is_live)
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=GENERATOR),
        tag("title", title),
        tag("link", rel="icon", href=ICON),
        tag("style", _asset("style.css")),
    )
    body = tag(
        "body",
        tag(
            "div",
            tag("header", tag("h1", title), tag("p", subtitle)),
            tag("nav", tag("ul", *links), aria_label="Sections"),
            silent if is_live else None,
            tag("main", *(marked if is_live else [s.html for s in sections])),
            tag("footer", f"Made by horizon-rl {__version__} from the runs' files."),
            class_="page",
        ),
        tag("script", _asset("live.js")) if is_live else None,
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def content_policy(*, is_live: bool) -> str:
    """Allow the page its own style and script, by their hashes, and nothing else."""
    rules = [
        "default-src 'none'",
        f"style-src {_hash('style.css')}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    if is_live:
        rules += [f"script-src {_hash('live.js')}", "connect-src 'self'"]
    return "; ".join(rules)


def _asset(name: str) -> Html:
    return Html(files("horizon_rl.show.report").joinpath(name).read_text("utf-8"))


def _hash(name: str) -> str:
    digest = hashlib.sha256(_asset(name).encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _block(block: Block, show: Callable[[Block], Html], downloads: bool) -> Html:
    match block:
        case Drawing():
            return _drawing(block, downloads)
        case Cells():
            return _table(block)
        case Facts():
            return _facts(block)
        case Prose():
            return _paragraph(block.text)
        case Commands():
            return _commands(block.lines)
        case Missing():
            note = _paragraph(block.what)
            return tag("div", note, _commands(block.commands), class_="missing")
        case Fold():
            inside = tag("div", *map(show, block.blocks), class_="inside")
            summary = tag("summary", block.title)
            return tag("details", summary, inside, open=block.is_open)


def _paragraph(text: str) -> Html:
    """Write a paragraph; what stands between backticks is code."""
    parts = re.split(r"`([^`]*)`", text)
    pieces = (tag("code", p) if k % 2 else p for k, p in enumerate(parts))
    return tag("p", *pieces)


def _commands(lines: Sequence[str]) -> Html:
    return tag("pre", tag("code", "\n".join(lines)))


def _drawing(drawing: Drawing, downloads: bool) -> Html:
    is_wide = drawing.figure.get_figwidth() > WIDE
    svg = drawing.svg.replace("<svg ", '<svg class="wide" ' if is_wide else "<svg ", 1)
    places = [
        tag("a", ending.upper(), href=f"{FIGURES}/{drawing.name}.{ending}")
        for ending in ("svg", "png")
    ]
    links = tag("span", " ", places[0], " ", places[1], class_="downloads")
    return tag(
        "figure",
        _scroll(Html(svg), drawing.about),
        tag("figcaption", f"{drawing.about}.", links if downloads else None),
    )


def _table(cells: Cells) -> Html:
    head = tag("tr", *(tag("th", h, scope="col") for h in cells.headings))
    rows = (
        tag("tr", tag("th", row[0], scope="row"), *(tag("td", c) for c in row[1:]))
        for row in cells.rows
    )
    table = tag(
        "table",
        tag("thead", head),
        tag("tbody", *rows),
        class_="words" if cells.headings[-1] in WORDS else None,
    )
    notes = tag("p", " ".join(cells.notes), class_="notes") if cells.notes else None
    box = _scroll(table, cells.title or "Table")
    # Not a caption, which would scroll away with the table.
    title = tag("p", cells.title, class_="title") if cells.title else None
    return tag("div", title, box, notes, class_="table")


def _scroll(inside: Html, label: str) -> Html:
    """Let what is too wide for a phone scroll in a box of its own, by keys as well."""
    return tag(
        "div", inside, class_="scroll", role="region", aria_label=label, tabindex="0"
    )


def _facts(facts: Facts) -> Html:
    pairs = (
        tag("div", tag("dt", what), tag("dd", value)) for value, what in facts.pairs
    )
    bar = None
    if facts.share is not None:
        value = f"{min(max(facts.share, 0.0), 1.0):.4f}"
        bar = tag("progress", value=value, max="1", aria_label="share done")
    return tag(
        "div",
        tag("h3", facts.title) if facts.title else None,
        tag("p", facts.subtitle, class_="soft") if facts.subtitle else None,
        tag("dl", *pairs) if facts.pairs else None,
        bar,
        class_="facts",
    )
