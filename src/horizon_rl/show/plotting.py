"""What all figures share: axes, colours, legends, files."""

from collections.abc import Iterable
from functools import cache
from io import StringIO
from itertools import cycle
from pathlib import Path
from typing import Any

from horizon_rl.curriculum import Decision
from horizon_rl.show.actions import ACTIONS
from horizon_rl.support.errors import needs_extra
from horizon_rl.support.printable import printable

# Okabe and Ito's colours, for colour-blind readers; one marker more: pairs are unique.
COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"),
    *("#56B4E9", "#000000", "#999999", "#F0E442"),
)
MARKERS = "osD^vPX<>*"
PARTIAL = "partial commit"
FAINT = "#8c959f"
ALL_STEPS = "env steps, millions, rolled-back phases and probes included"


def new_figure(
    width: float, height: float, rows: int = 1, columns: int = 1, **shared: Any
) -> tuple[Any, list[Any]]:
    """Return a figure and its axes, row by row; sizes are in inches."""
    figure = _plain_figure()(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **shared).ravel().tolist()
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes


@cache
def _plain_figure() -> Any:
    with needs_extra("plot"):
        from matplotlib import rc_context
        from matplotlib.figure import Figure
        from matplotlib.text import Text

    class PlainFigure(Figure):
        """Shows names as they are: a dollar in one begins no formula.

        Its layout is computed once: matplotlib would draw it twice for every format.
        """

        def savefig(self, *args: Any, **options: Any) -> None:
            for text in self.findobj(Text):
                text.set_parse_math(False)
            # Ticks are made while it is drawn.
            with rc_context({"text.parse_math": False}):
                if engine := self.get_layout_engine():
                    engine.execute(self)
                    self.set_layout_engine(None)
                super().savefig(*args, **options)

    return PlainFigure


def mark_style(decision: Decision) -> dict[str, Any]:
    """Return how the mark of a decision is drawn; a partial commit is hollow."""
    *_, marker, colour = ACTIONS[decision.action]
    style = {"marker": marker, "color": colour, "ms": 5, "mew": 1.5, "zorder": 3}
    if marker == "*":
        style |= {"ms": 9, "mew": 0.5, "mec": "white"}
    if decision.levels:
        style |= {"mfc": "white", "mec": colour, "mew": 1.0}
    return style


def name_styles(names: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return colour and marker of every name, in the order in which they come."""
    unique = list(dict.fromkeys(names))
    return dict(zip(unique, cycle(COLOURS), strict=False)), dict(
        zip(unique, cycle(MARKERS), strict=False)
    )


def add_legend(figure: Any, number: int) -> None:
    # Above the axes: inside, it would lie on what it explains.
    columns = min(number, int(figure.get_figwidth() / 2.2))
    figure.legend(loc="outside upper left", ncols=columns, frameon=False, fontsize=9)


def save_figure(figure: Any, stem: Path) -> list[Path]:
    """Write PNG and SVG; no date and no random ids inside: alike for alike runs."""
    from matplotlib import rc_context

    # The name may hold dots: with_suffix would cut it.
    buffer = StringIO()
    png, svg = (stem.with_name(stem.name + ending) for ending in (".png", ".svg"))
    with rc_context({"svg.hashsalt": "horizon"}):
        figure.savefig(buffer, format="svg", dpi=150, metadata={"Date": None})
        figure.savefig(png, dpi=150)
    svg.write_text(printable(buffer.getvalue()), "utf-8")
    return [png, svg]
