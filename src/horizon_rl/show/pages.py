"""Tables of Markdown pages that are filled from collected records.

    <!-- records: studies/core.jsonl success severity=0.5 cells=horizon_* -->
    ...
    <!-- end of records -->

What stands between the two lines is generated: no number of it is typed by hand, and a
test checks that every page is what its records make of it.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from horizon_rl.evaluation.success import make_curves
from horizon_rl.grid.folder import read_collected
from horizon_rl.policies.shipped import model_names, read_model
from horizon_rl.runs.results import Record
from horizon_rl.show.plotting import name_styles
from horizon_rl.show.record_tables import KINDS, Choice, cost_points
from horizon_rl.show.study_figures import curves_figure
from horizon_rl.show.table import to_markdown
from horizon_rl.support.errors import InputError, blame, unknown
from horizon_rl.support.records import decode

BLOCK = re.compile(
    r"^(<!-- records: (?P<words>[^\n]*?) -->\n)(?:(?!^<!-- records:).)*?^(<!-- end of records -->)",
    re.DOTALL | re.MULTILINE,
)
OPENING = re.compile(r"^<!--\s*records?\s*:.*", re.MULTILINE | re.IGNORECASE)
NUMBERS = ("severity", "mark")
SHIPPED = "models"
"""In place of a file: the policies that come with the package."""
OF_POLICIES = ("success", "close", "glance")
"""Kinds of table that need evaluations alone, not the runs."""
OF_SUITE = ("cells", "suite", "severity", "draw", "mark")
KEYS = {
    "success": OF_SUITE,
    "close": OF_SUITE,
    "iqm": OF_SUITE,
    "coverage": ("cells",),
    "cost": ("cells", "suite", "severity", "draw", "column", "figure"),
    "core": ("cells", "suite", "severity", "draw"),
    "diagnostic": ("cells",),
    "glance": ("cells", "draw"),
}
"""What a block may choose, by its kind."""


def fill_page(text: str, root: Path, source: str = "page") -> str:
    """Return a page with all its blocks filled.

    Args:
        text: The page.
        root: Folder that the names of records start from.
        source: What to call the page in complaints.
    """

    def fill(block: re.Match[str]) -> str:
        with blame(f"{source}: '{block['words']}'"):
            kind, records, choice = _read(block["words"].split(), root)
            tables = "\n".join(map(to_markdown, KINDS[kind](records, choice)))
            return f"{block[1]}\n{tables}\n{block[3]}"

    _check_openings(text, source)
    return BLOCK.sub(fill, text)


def _check_openings(text: str, source: str) -> None:
    """Refuse a page on which a block is misspelt or does not end."""
    starts = {block.start() for block in BLOCK.finditer(text)}
    for found in OPENING.finditer(text):
        if found.start() not in starts:
            line = text.count("\n", 0, found.start()) + 1
            raise InputError(
                f"{source}: line {line}: '{found[0]}' is no block: accepted: <!-- records: "
                "... --> and <!-- end of records -->, each on a line of its own"
            )


def draw_figures(text: str, root: Path, source: str = "page") -> list[Path]:
    """Draw the figures that a page's blocks name; see `fill_page`."""
    drawn = []
    for block in BLOCK.finditer(text):
        with blame(f"{source}: '{block['words']}'"):
            _, records, choice = _read(block["words"].split(), root)
            if choice.figure:
                path = root / choice.figure
                _cost_figure(records, choice).savefig(path, dpi=150)
                drawn.append(path)
    return drawn


def _cost_figure(records: Sequence[Record], choice: Choice) -> Any:
    curves = make_curves([point for point, _ in cost_points(records, choice)])
    styles = name_styles(curve.method for curve in curves)
    measure = "mean success over severities" if choice.suite == "curve" else "success"
    return curves_figure(curves, styles, f"{measure}, {choice.column}")


def _read(words: list[str], root: Path) -> tuple[str, Sequence[Record], Choice]:
    """Return the kind of a block's table, the records that it names, and which of them."""
    if len(words) < 2:
        raise InputError(
            f"accepted: FILE.jsonl KIND key=value ..., or {SHIPPED} in place of the file"
        )
    file, kind, *pairs = words
    if kind not in KINDS:
        raise InputError(unknown("kind of table", kind, KINDS))
    given = {key: value for key, _, value in (pair.partition("=") for pair in pairs)}
    for key in given:
        if key not in KEYS[kind]:
            raise InputError(unknown(f"key of {kind}", key, KEYS[kind]))
    choice = decode(Choice, {k: _value(k, text) for k, text in given.items()})
    if choice.figure and not choice.figure.endswith(".png"):
        raise InputError("accepted: figure=FILE.png")
    if kind == "glance" and file != SHIPPED:
        raise InputError(f"glance is of {SHIPPED} alone, in place of the file")
    if file != SHIPPED:
        return kind, read_collected(root / file), choice
    if kind not in OF_POLICIES:
        raise InputError(f"accepted of {SHIPPED}: {', '.join(OF_POLICIES)}")
    return kind, _shipped(), choice


def _value(key: str, text: str) -> str | float:
    try:
        return float(text) if key in NUMBERS else text
    except ValueError as error:
        raise InputError(f"{key}={text}: accepted: a number") from error


def _shipped() -> list[Record]:
    """Return what is on record of the policies that come with the package."""
    return [
        {
            "run": name,
            "cell": name,
            "env_steps": model.env_steps,
            "evaluations": [{**found, "mark": None} for found in model.results],
        }
        for name, model in ((name, read_model(name)) for name in model_names())
    ]
