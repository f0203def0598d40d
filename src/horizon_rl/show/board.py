"""The board of a run: one row per domain group, and what was decided last."""

from collections.abc import Mapping, Sequence

from rich.console import Group
from rich.text import Text

from horizon_rl.curriculum import CurriculumCfg, Entry, Frontier, State
from horizon_rl.curriculum.entry import last_try
from horizon_rl.show.actions import ACTIONS
from horizon_rl.show.numbers import NONE
from horizon_rl.show.table import Cell, FittedTable, Table

STATUS_STYLE = {"boundary": "magenta", "complete": "green", "pending retry": "yellow"}

Coverage = Mapping[str, float | None]
"""Coverage of every group at its mastered level; None where it is not known."""


def board(
    state: State, entries: Sequence[Entry], coverage: Coverage, cfg: CurriculumCfg
) -> Group:
    """Draw the frontiers, the last decision and the phase on trial."""
    table = frontier_table(state, entries, coverage, cfg)
    return Group(Text(table.title, "bold"), FittedTable(table), _footer(state, entries))


def frontier_table(
    state: State, entries: Sequence[Entry], coverage: Coverage, cfg: CurriculumCfg
) -> Table:
    """Lay out where every group stands."""
    rows = []
    for frontier in state.frontiers:
        level = state.proposal.level_of(frontier) if state.proposal else None
        candidate = "" if level is None else Cell(f"{level:.3f}", "bold")
        verdict = _last_verdict(frontier, entries)
        for group in frontier.groups:
            share = coverage.get(group)
            rows.append(
                (
                    group,
                    _status(frontier, cfg),
                    f"{frontier.mastered:.3f}",
                    candidate,
                    "" if frontier.failed is None else f"{frontier.failed:.3f}",
                    Cell(f"{share:5.1%}", share=share) if share is not None else NONE,
                    verdict,
                )
            )
    return Table(
        f"Frontiers after {state.phase} phases",
        (
            *("group", "status", "mastered", "candidate"),
            *("failed", "coverage", "last verdict"),
        ),
        tuple(rows),
        align="llrrrl",
    )


def _last_verdict(frontier: Frontier, entries: Sequence[Entry]) -> Cell:
    entry = last_try(frontier, entries)
    if entry is None:
        return Cell("not tried yet", "dim")
    look, kept = ACTIONS[entry.decision.action], entry.decision.levels
    words = f"{entry.proposal.level_of(frontier):.3f}"
    if kept:  # Less than was tried.
        words = f"{kept[frontier.groups[0]]:.3f} of {words}"
    return Cell(f"{look.sign} {words}", look.style)


def _status(frontier: Frontier, cfg: CurriculumCfg) -> Cell:
    style = STATUS_STYLE.get(frontier.status, "")
    # Only a bracket that is refined has rungs; a leap that failed has none.
    tries = f" {frontier.rung}/{cfg.max_rungs}" if frontier.rung else ""
    return Cell(f"{frontier.status}{tries}", style)


def _footer(state: State, entries: Sequence[Entry]) -> Text:
    text = Text()
    if entries:
        decision = entries[-1].decision
        text.append(f"phase {decision.phase}: ", style="bold")
        text.append(f"{decision.reason}\n", style=ACTIONS[decision.action].style)
    if proposal := state.proposal:
        text.append(f"phase {proposal.phase}: ", style="bold")
        plain = proposal.kind in ("baseline", "other")
        kind = "" if plain else f"{proposal.kind}, "
        text.append(f"{kind}{proposal.trial}: {proposal.reason}")
    else:
        text.append(f"ended: {state.ended}", style="bold")
    return text
