"""The paper's frontier figure: level against phase, one panel per domain group."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from horizon_rl.curriculum import Entry
from horizon_rl.support.errors import InputError, needs_extra

BAND = {"coarse": "#9ecae1", "recovery": "#fdd0a2", "retry": "#bcbddc"}
BAND["clock"] = BAND["coarse"]
COMMIT, ROLLBACK, MASTERED = "#1a7f37", "#cf222e", "#08519c"
FORMATS = (".png", ".svg", ".pdf")


def draw_frontiers(
    entries: Sequence[Entry], groups: Sequence[str], paths: Sequence[Path], title: str
) -> None:
    """Draw attempts as bands, rollbacks as crosses and commits as stars.

    Args:
        entries: A run's judged phases.
        groups: Groups to draw, one panel each.
        paths: Files to write; the suffix picks the format.
        title: Line above the panels.
    """
    for path in paths:
        if path.suffix not in FORMATS:
            accepted = ", ".join(FORMATS)
            raise InputError(f"cannot draw to '{path}'; accepted endings: {accepted}")
    figure = frontier_figure(entries, groups, title)
    from matplotlib import rc_context

    # No date and no random ids inside: the same run gives the same file.
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with rc_context({"svg.hashsalt": "horizon"}):
        for path in paths:
            figure.savefig(path, dpi=150, metadata=metadata.get(path.suffix))


def frontier_figure(
    entries: Sequence[Entry], groups: Sequence[str], title: str = ""
) -> Any:
    """Return the figure itself, for a file or a page."""
    with needs_extra("plot"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    figure = Figure(figsize=(9, 0.7 + 1.15 * len(groups)), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(groups), sharex=True, sharey=True, squeeze=False)[:, 0]
    for panel, group in zip(panels, groups, strict=True):
        _draw_group(panel, entries, group)
    panels[-1].set_xlabel("phase")
    if title:
        figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    _draw_legend(figure)
    return figure


def _draw_group(panel, entries: Sequence[Entry], group: str) -> None:
    phases, mastered = [0], [0.0]
    for entry in entries:
        proposal, decision = entry.proposal, entry.decision
        start, level = proposal.phase, proposal.levels[group]
        before = proposal.mastered[group]
        tried = decision.frontier is not None and level != before
        if tried:
            panel.fill_between(
                (start, start + 1), before, level, color=BAND[decision.kind], lw=0
            )
        if tried and decision.action == "commit":
            panel.plot(
                start + 0.5, level, "*", color=COMMIT, ms=9, mec="white", mew=0.5
            )
        elif tried:
            panel.plot(start + 0.5, level, "x", color=ROLLBACK, ms=5, mew=1.5)
        phases.append(start + 1)
        mastered.append(level if decision.action == "commit" else before)
    panel.step(phases, mastered, where="post", color=MASTERED, lw=1.5)
    panel.set_ylim(-0.04, 1.06)
    panel.set_xlim(0, max(len(entries), 1))
    panel.set_yticks((0.0, 0.5, 1.0))
    panel.set_ylabel(group, rotation=0, ha="right", va="center")
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(axis="y", lw=0.4, alpha=0.5)


def _draw_legend(figure) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Patch(color=BAND["coarse"], label="coarse"),
        Patch(color=BAND["recovery"], label="recovery"),
        Patch(color=BAND["retry"], label="retry"),
        Line2D([], [], marker="*", ls="", color=COMMIT, ms=9, label="commit"),
        Line2D([], [], marker="x", ls="", color=ROLLBACK, mew=1.5, label="rollback"),
        Line2D([], [], color=MASTERED, label="mastered"),
    ]
    figure.legend(
        handles=handles, loc="outside upper right", ncols=6, frameon=False, fontsize=8
    )
