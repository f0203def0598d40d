"""The paper's frontier figure: level against phase, one panel per domain group."""

from collections.abc import Sequence
from typing import Any

from horizon_rl.curriculum import Entry
from horizon_rl.show.plotting import COMMIT, ROLLBACK, new_figure

BAND = {"coarse": "#9ecae1", "recovery": "#fdd0a2", "retry": "#bcbddc"}
MASTERED = "#08519c"


def frontier_figure(
    entries: Sequence[Entry], groups: Sequence[str], title: str = ""
) -> Any:
    """Draw attempts as bands, rollbacks as crosses and commits as stars.

    Args:
        entries: A run's judged phases.
        groups: Groups to draw, one panel each.
        title: Line above the panels.
    """
    height = 0.7 + 1.15 * len(groups)
    figure, panels = new_figure(9, height, len(groups), sharex=True, sharey=True)
    for panel, group in zip(panels, groups, strict=True):
        _draw_group(panel, entries, group)
    panels[-1].set_xlabel("phase")
    if title:
        figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    _draw_legend(figure)
    return figure


def _draw_group(panel: Any, entries: Sequence[Entry], group: str) -> None:
    phases, mastered = [0], [0.0]
    for entry in entries:
        proposal, decision = entry.proposal, entry.decision
        start, level = proposal.phase, proposal.levels[group]
        before, committed = proposal.mastered[group], decision.action == "commit"
        if decision.frontier is not None and level != before:
            # Levels that go by the clock are coloured like coarse steps.
            band = BAND.get(decision.kind, BAND["coarse"])
            panel.fill_between((start, start + 1), before, level, color=band, lw=0)
            style = {"color": ROLLBACK, "ms": 5, "mew": 1.5}
            if committed:
                style = {"color": COMMIT, "ms": 9, "mec": "white", "mew": 0.5}
            panel.plot(start + 0.5, level, "*" if committed else "x", **style)
        phases.append(start + 1)
        mastered.append(level if committed else before)
    panel.step(phases, mastered, where="post", color=MASTERED, lw=1.5)
    panel.set(xlim=(0, max(len(entries), 1)), ylim=(-0.04, 1.06), yticks=(0, 0.5, 1))
    panel.set_ylabel(group, rotation=0, ha="right", va="center")
    panel.grid(axis="y", lw=0.4, alpha=0.5)


def _draw_legend(figure: Any) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        *(Patch(color=colour, label=kind) for kind, colour in BAND.items()),
        Line2D([], [], marker="*", ls="", color=COMMIT, ms=9, label="commit"),
        Line2D([], [], marker="x", ls="", color=ROLLBACK, mew=1.5, label="rollback"),
        Line2D([], [], color=MASTERED, label="mastered"),
    ]
    figure.legend(
        handles=handles, loc="outside upper right", ncols=6, frameon=False, fontsize=8
    )
