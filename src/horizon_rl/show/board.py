"""The board of a run: one row per domain group, and what was decided last."""

from collections.abc import Mapping, Sequence

from rich.console import Group
from rich.text import Text

from horizon_rl.curriculum import CurriculumCfg, Entry, Frontier, State
from horizon_rl.show.numbers import NONE
from horizon_rl.show.table import Cell, Table, to_rich

DONE = {"commit": "committed", "rollback": "rolled back", "hold": "held"}
ACTION_STYLE = {"commit": "green", "rollback": "red", "hold": "yellow"}
ACTION_MARK = {"commit": "★", "rollback": "✗", "hold": "…"}
STATUS_STYLE = {"boundary": "magenta", "complete": "green", "pending retry": "yellow"}

Coverage = Mapping[str, float | None]
"""Coverage of every group at its mastered level; None where it is not known."""


def board(
    state: State, entries: Sequence[Entry], coverage: Coverage, cfg: CurriculumCfg
) -> Group:
    """Draw the frontiers, the last decision and the phase on trial."""
    table = frontier_table(state, entries, coverage, cfg)
    return Group(Text(table.title, "bold"), to_rich(table), _footer(state, entries))


def frontier_table(
    state: State, entries: Sequence[Entry], coverage: Coverage, cfg: CurriculumCfg
) -> Table:
    """Lay out where every group stands."""
    latest = {entry.decision.frontier: entry.decision for entry in entries}
    rows = []
    for frontier in state.frontiers:
        decision = latest.get(frontier.name)
        candidate: str | Cell = ""
        if state.proposal and state.proposal.frontier == frontier.name:
            candidate = Cell(f"{state.proposal.candidate:.3f}", "bold")
        verdict = Cell("not tried yet", "dim")
        if decision:
            mark = f"{ACTION_MARK[decision.action]} {decision.candidate:.3f}"
            verdict = Cell(mark, ACTION_STYLE[decision.action])
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


def _status(frontier: Frontier, cfg: CurriculumCfg) -> Cell:
    style = STATUS_STYLE.get(frontier.status, "")
    tries = f" {frontier.rung}/{cfg.max_rungs}" * (frontier.status == "recovery")
    return Cell(f"{frontier.status}{tries}", style)


def _footer(state: State, entries: Sequence[Entry]) -> Text:
    text = Text()
    if entries:
        decision = entries[-1].decision
        text.append(f"phase {decision.phase}: ", style="bold")
        text.append(f"{decision.reason}\n", style=ACTION_STYLE[decision.action])
    if proposal := state.proposal:
        text.append(f"phase {proposal.phase}: ", style="bold")
        name = proposal.frontier or "baseline"
        text.append(f"{proposal.kind} proposal, {name} {proposal.candidate:.3f}: ")
        text.append(proposal.reason)
    else:
        text.append(f"ended: {state.ended}", style="bold")
    return text
