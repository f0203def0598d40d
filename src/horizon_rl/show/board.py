"""The board of a run: one row per domain group, and what was decided last."""

from collections.abc import Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from horizon_rl.curriculum import CurriculumCfg, Entry, Frontier, Proposal, State
from horizon_rl.domains import Catalogue

ACTION_STYLE = {"commit": "green", "rollback": "red", "hold": "yellow"}
ACTION_MARK = {"commit": "★", "rollback": "✗", "hold": "…"}
STATUS_STYLE = {"boundary": "magenta", "complete": "green", "pending retry": "yellow"}


def board(
    state: State, entries: Sequence[Entry], catalogue: Catalogue, cfg: CurriculumCfg
) -> Group:
    """Draw the frontiers, the last decision and the phase on trial."""
    return Group(
        _frontier_table(state, entries, catalogue, cfg), _footer(state, entries)
    )


def bar(share: float, width: int = 8) -> Text:
    """Draw a share in [0, 1] as a bar, to an eighth of a cell."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    filled = "█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")
    return Text(filled.ljust(width, "·"), style="cyan")


def _frontier_table(
    state: State, entries: Sequence[Entry], catalogue: Catalogue, cfg: CurriculumCfg
) -> Table:
    # No box and little padding: all of it must fit a terminal of 80 columns.
    table = Table(
        title=f"Frontiers after {state.phase} phases",
        title_justify="left",
        box=None,
        padding=(0, 1, 0, 0),
        header_style="bold",
    )
    for name in ("group", "status"):
        table.add_column(name, no_wrap=True)
    for name in ("mastered", "candidate", "failed"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("coverage", "last verdict"):
        table.add_column(name, no_wrap=True)
    coverage = catalogue.coverage(state.mastered)
    for frontier in state.frontiers:
        for group in frontier.groups:
            table.add_row(
                group,
                _status(frontier, cfg),
                f"{frontier.mastered:.3f}",
                _candidate(frontier, state.proposal),
                "" if frontier.failed is None else f"{frontier.failed:.3f}",
                bar(coverage[group]).append(f" {coverage[group]:5.1%}", style="none"),
                _last_verdict(frontier, entries),
            )
    return table


def _status(frontier: Frontier, cfg: CurriculumCfg) -> Text:
    text = Text(frontier.status, style=STATUS_STYLE.get(frontier.status, ""))
    if frontier.status == "recovery":
        text.append(f" {frontier.rung}/{cfg.max_rungs}")
    return text


def _candidate(frontier: Frontier, proposal: Proposal | None) -> Text:
    if proposal is None or proposal.frontier != frontier.name:
        return Text("")
    return Text(f"{proposal.candidate:.3f}", style="bold")


def _last_verdict(frontier: Frontier, entries: Sequence[Entry]) -> Text:
    mine = (
        e.decision for e in reversed(entries) if e.decision.frontier == frontier.name
    )
    decision = next(mine, None)
    if decision is None:
        return Text("not tried yet", style="dim")
    mark = ACTION_MARK[decision.action]
    text = f"{mark} {decision.candidate:.3f}"
    return Text(text, style=ACTION_STYLE[decision.action])


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
