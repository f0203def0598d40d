"""The page from templates: sections, and around them one file that needs nothing else."""

import base64
import hashlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from horizon_rl import __version__
from horizon_rl.runs.summary import RunSummary
from horizon_rl.show import (
    board,
    failure_figure,
    frontier_figure,
    numbers,
    scores,
    status_board,
    study_figures,
    study_tables,
)
from horizon_rl.show.report import figures, films, tables
from horizon_rl.show.report.gather import Material, ReportedRun
from horizon_rl.show.report.svg import figure_svg
from horizon_rl.support.errors import needs_extra

with needs_extra("plot"):
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

GENERATOR = "horizon-rl"
"""By this a page of ours is known from another that it must not replace."""
FIGURES = "figures"
"""Folder beside the page that has its figures as files."""
FEW = 3
"""This many runs are shown open; more would bury what comes after them."""
LONGEST = 60
"""Characters of a file's name: a path may be longer than that can be."""
MODULES = (
    *(board, failure_figure, frontier_figure, numbers, scores, status_board),
    *(study_figures, study_tables, figures, films, tables),
)
"""Whose functions the template may call."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawing:
    """A figure on the page, and as a file beside it."""

    name: str
    """Name of its files, and of its place on the page."""
    about: str
    figure: Any
    """matplotlib's."""
    svg: Markup
    is_linked: bool


@dataclass(frozen=True)
class Section:
    """A rendered part of the page, known by a hash of it."""

    id: str
    title: str
    body: Markup

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.body.encode()).hexdigest()[:16]

    def html(self, *, with_digest: bool = False) -> Markup:
        """Return the element; by its digest the live page's script knows a change."""
        digest = Markup(' data-digest="{}"').format(self.digest) if with_digest else ""
        start = Markup('<section id="{0}"{1}><h2><a href="#{0}">{2}</a></h2>\n')
        head = start.format(self.id, digest, self.title)
        return head + self.body + Markup("</section>")


def render_sections(
    material: Material, *, is_linked: bool = False
) -> tuple[list[Section], list[Drawing]]:
    """Render all sections for which there is anything to say, and their figures.

    Args:
        material: What there is to show.
        is_linked: Whether figures link to files beside the page.
    """
    drawings: list[Drawing] = []

    def draw(name: str, about: str, figure: Any) -> Drawing:
        name = slug(name)
        svg = Markup(figure_svg(figure, name, about))
        drawings.append(
            Drawing(name=name, about=about, figure=figure, svg=svg, is_linked=is_linked)
        )
        return drawings[-1]

    sections = [
        Section(name, title, _render_block(name, m=material, draw=draw))
        for name, title in _environment().globals["ui"].SECTIONS.items()
    ]
    return [section for section in sections if section.body.strip()], drawings


def render_live(summary: RunSummary | None, problem: str | None = None) -> Section:
    """Render what a run is doing now; `problem` is why files cannot be read."""
    return Section(
        "live", "Now", _render_block("live", summary=summary, problem=problem)
    )


def render_page(
    title: str, subtitle: str, sections: Sequence[Section], *, is_live: bool = False
) -> str:
    """Put the page together; a live one brings the script that keeps it so."""
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=title,
            subtitle=subtitle,
            sections=sections,
            policy=content_policy(is_live=is_live),
            style=_asset("style.css"),
            script=_asset("live.js") if is_live else None,
            generator=GENERATOR,
            version=__version__,
        )
    )


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


def slug(text: str) -> str:
    """Turn a name, wherever it comes from, into part of a file's name and of an id."""
    clean = re.sub(r"[^\w.+-]+", "-", text)
    if len(clean) <= LONGEST:
        return clean
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{clean[: LONGEST - 9]}-{digest}"


@cache
def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader("horizon_rl.show.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for module in MODULES:
        functions = {k: f for k, f in vars(module).items() if not k.startswith("_")}
        found.globals |= {k: f for k, f in functions.items() if callable(f)}
    found.globals |= {"FEW": FEW, "NONE": numbers.NONE, "names": _names}
    found.globals["ui"] = found.get_template("macros.html").module
    return found


def _render_block(name: str, **values: Any) -> Markup:
    template = _environment().get_template("sections.html")
    return Markup("".join(template.blocks[name](template.new_context(values))))


def _names(runs: Sequence[ReportedRun]) -> str:
    """Name the policies of runs for a shell."""
    return shlex.join([run.source.text for run in runs])


def _asset(name: str) -> Markup:
    return Markup(files("horizon_rl.show.report").joinpath(name).read_text("utf-8"))


def _hash(name: str) -> str:
    digest = hashlib.sha256(_asset(name).encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
