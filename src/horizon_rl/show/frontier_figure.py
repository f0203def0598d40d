"""The paper's frontier figure: level against phase, one panel per domain group."""

from collections.abc import Sequence
from typing import Any

from horizon_rl.curriculum import Entry
from horizon_rl.show.actions import ACTIONS
from horizon_rl.show.plotting import PARTIAL, mark_style, new_figure

BAND = {
    "coarse": "#9ecae1",
    "recovery": "#fdd0a2",
    "retry": "#bcbddc",
    "leap": "#a8ddd5",
    "consolidate": "#cccccc",
}
"""Colours of attempts; levels that go by the clock are coloured like coarse steps."""
SPREAD = "#c6dbef"
"""Where instances have levels of their own, see `Proposal.band_and_line`."""
MASTERED = "#08519c"
THIN = 0.06
"""Half the height of a band that goes nowhere: a phase at the mastered levels."""


def frontier_figure(
    entries: Sequence[Entry], groups: Sequence[str], title: str = ""
) -> Any:
    """Draw attempts as bands, with a mark for the outcome of each.

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
    panels[-1].locator_params(axis="x", integer=True)
    if title:
        figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    _draw_legend(figure, entries)
    return figure


def _draw_group(panel: Any, entries: Sequence[Entry], group: str) -> None:
    phases, mastered = [0], [0.0]
    for entry in entries:
        proposal, decision = entry.proposal, entry.decision
        start, level = proposal.phase, proposal.levels[group]
        before = proposal.mastered[group]
        kept = (decision.levels or proposal.levels)[group]
        if spread := proposal.band_of(group):
            panel.fill_between((start, start + 1), *spread, color=_band(entry), lw=0)
            mastered[-1] = level  # The line is the phase's own, like its band.
        elif level != before or decision.kind == "consolidate":
            low, high = before, level
            if level == before:
                low, high = level - THIN, level + THIN
            panel.fill_between((start, start + 1), low, high, color=_band(entry), lw=0)
            # A partial commit is marked where it ended.
            where = kept if decision.action == "commit" else level
            panel.plot(start + 0.5, where, **mark_style(decision))
        phases.append(start + 1)
        mastered.append(kept if decision.action == "commit" else before)
    panel.step(phases, mastered, where="post", color=MASTERED, lw=1.5)
    panel.set(xlim=(0, max(len(entries), 1)), ylim=(-0.08, 1.08), yticks=(0, 0.5, 1))
    panel.set_ylabel(group, rotation=0, ha="right", va="center")
    panel.grid(axis="y", lw=0.4, alpha=0.5)


def _band(entry: Entry) -> str:
    if _has_spread(entry):
        return SPREAD
    return BAND.get(entry.decision.kind, BAND["coarse"])


def _has_spread(entry: Entry) -> bool:
    return any(entry.proposal.band_of(group) for group in entry.proposal.levels)


def _draw_legend(figure: Any, entries: Sequence[Entry]) -> None:
    """Explain what is drawn, and nothing else."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    words = [e.proposal.band_and_line for e in entries if _has_spread(e)]
    band, line = words[0] if words else ("", "mastered")
    named = BAND | {band: SPREAD}
    bands = {_band(e) for e in entries if e.decision.kind != "baseline"}
    marks = {
        PARTIAL if e.decision.levels else e.decision.action: mark_style(e.decision)
        for e in entries
        if e.decision.kind != "baseline" and not _has_spread(e)
    }
    handles = [
        *(Patch(color=c, label=name) for name, c in named.items() if c in bands),
        *(
            Line2D([], [], ls="", label=name, **marks[name])
            for name in (*ACTIONS, PARTIAL)
            if name in marks
        ),
        Line2D([], [], color=MASTERED, label=line),
    ]
    figure.legend(
        handles=handles, loc="outside upper right", ncols=6, frameon=False, fontsize=8
    )
