"""How a run is doing, on one screen of 80 columns."""

from dataclasses import replace

from rich.console import Console
from rich.table import Table
from rich.text import Text

from horizon_rl.domains import Catalogue, Group, Parameter, Range
from horizon_rl.runs.journal import Replay
from horizon_rl.runs.summary import (
    BudgetSummary,
    Drift,
    Progress,
    RunSummary,
    Spent,
    Times,
)
from horizon_rl.show.board import board

STYLE = {"running": "bold green", "finished": "bold", "stopped": "bold yellow"}
DONE = {"commit": "committed", "rollback": "rolled back", "hold": "held"}
UNITS = ((3600.0, "h"), (60.0, "min"), (1.0, "s"))


def print_status(
    console: Console,
    summary: RunSummary,
    journal: Replay,
    catalogue: Catalogue | None,
) -> None:
    """Print how a run is doing: head, frontiers, what its phases cost, the rest."""
    # Paths and commands are there to be copied: they are not wrapped.
    console.print(_headline(summary), soft_wrap=True)
    console.print(describe_origin(summary), soft_wrap=True, markup=False)
    if summary.resume:
        console.print(f"Go on with: {summary.resume}", soft_wrap=True, markup=False)
        if summary.budget and summary.budget.spent:
            console.print("Its first budget is spent: add --steps or --minutes.")
    state, header = journal.state, journal.header
    if summary.ended:
        state = replace(state, proposal=None, ended=summary.ended)
    console.print()
    console.print(
        board(
            state,
            journal.entries,
            catalogue or _levels_alone(header.groups),
            header.curriculum,
        )
    )
    console.print()
    if summary.phases:
        console.print(_verdict_table(summary))
        console.print()
    console.print(_notes(summary))
    if found := summary.checkpoint:
        missing = "" if found.exists else " (missing: its folder is not there)"
        text = Text("checkpoint  ", style="bold").append(found.path, style="none")
        console.print(text.append(missing, style="red"), soft_wrap=True)


def _headline(summary: RunSummary) -> Text:
    text = Text(f"{summary.run}: ").append(
        summary.standing, style=STYLE[summary.standing]
    )
    if summary.ended:
        return text.append(f", {summary.ended}")
    ago = f"last line {show_duration(summary.age_s)} ago"
    if summary.is_silent:
        return text.append(f", {ago}: it may hang", style="bold red")
    if summary.standing == "stopped" and summary.proposal:
        phase = summary.proposal.phase
        if summary.checkpoint and not summary.checkpoint.exists:
            # A copy without its weights, as shipped policies have, cannot go on.
            return text.append(f" before phase {phase} was judged")
        ago += f"; phase {phase} was not judged and runs again"
    return text.append(f", {ago}")


def describe_origin(summary: RunSummary) -> str:
    if summary.kind == "other":
        return "a curriculum in a training loop of its own"
    parts = [f"{summary.kind} by {summary.method}"]
    if summary.start:
        parts[0] += f" {summary.start}"
    parts.append(f"seed {summary.seed}")
    if summary.ranks > 1:
        parts.append(f"{summary.ranks} ranks")
    if summary.budget:
        parts.append(_budget(summary.budget))
    return ", ".join(parts)


def _budget(budget: BudgetSummary) -> str:
    limits = []
    if budget.steps:
        limits.append(f"{show_count(budget.steps)} env steps")
    if budget.minutes:
        limits.append(f"{budget.minutes:g} min")
    return f"{budget.share:.0%} of {' or '.join(limits)} spent"


def _verdict_table(summary: RunSummary) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("verdicts", no_wrap=True)
    headings = ["phases", "env steps", "share"]
    if summary.kind == "training":
        headings.append("in probes")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for action, spent in summary.by_action.items():
        if spent.phases or action != "hold":
            table.add_row(DONE[action], *_costs(spent))
    table.add_row("all", *_costs(_total(summary)))
    return table


def _total(summary: RunSummary) -> Spent:
    probes = [spent.probe_env_steps for spent in summary.by_action.values()]
    return Spent(
        phases=summary.phases,
        env_steps=summary.env_steps,
        share=1.0,
        probe_env_steps=None if None in probes else sum(filter(None, probes)),
    )


def _costs(spent: Spent) -> list[str]:
    cells = [str(spent.phases), show_count(spent.env_steps), f"{spent.share:.0%}"]
    if spent.probe_env_steps is not None:
        share = spent.probe_env_steps / max(spent.env_steps, 1)
        cells.append(f"{share:.0%}" if spent.env_steps else "-")
    return cells


def _notes(summary: RunSummary) -> Table:
    """Show the rest, a line each."""
    table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(style="bold", no_wrap=True, min_width=10)
    table.add_column()
    if summary.standing != "finished" and summary.kind == "training":
        assert summary.proposal is not None
        table.add_row(f"phase {summary.proposal.phase}", _progress(summary.progress))
    table.add_row("frontiers", _levels(summary))
    if summary.times:
        table.add_row("time", _times(summary.times, summary.phases))
    if summary.anchor:
        table.add_row("at level 0", _drift(summary.anchor))
    return table


def _progress(progress: Progress | None) -> str:
    if progress is None:
        return "no iteration yet"
    parts = [f"iteration {progress.iterations}"]
    if progress.max_iterations:
        parts[0] += f" of {progress.max_iterations}"
    if progress.steps_per_s:
        parts.append(f"{progress.steps_per_s:,.0f} steps/s")
    if progress.episode_length is not None:
        parts.append(f"length {progress.episode_length:.0%}")
    if progress.tracking_error is not None:
        parts.append(f"error {progress.tracking_error:.2f} m/s")
    return ", ".join(parts)


def _levels(summary: RunSummary) -> str:
    met = summary.boundaries
    boundaries = "1 boundary" if met == 1 else f"{met} boundaries"
    return f"mean mastered level {summary.difficulty:.3f}, {boundaries} met"


def _times(times: Times, judged: int) -> str:
    some = "" if times.phases == judged else f" (of {times.phases} phases on record)"
    return (
        f"{show_duration(times.total_s)}{some}: training {times.train_share:.0%}, "
        f"probes {times.probe_share:.0%}, settling {times.settle_share:.0%}"
    )


def _drift(drift: Drift) -> str:
    if drift.first_phase == drift.last_phase:
        return f"error {drift.last_error:.3f} m/s at the first commit"
    text = f"error {drift.first_error:.3f} -> {drift.last_error:.3f} m/s"
    if drift.first_return is not None and drift.last_return is not None:
        text += f", return {drift.first_return:.3g} -> {drift.last_return:.3g}"
    return f"{text} (first, last commit)"


def _levels_alone(groups: tuple[str, ...]) -> Catalogue:
    """Stand in for a catalogue that is not on record: coverage is the level."""
    parameter = Parameter(name="level", baseline=Range(0, 0), limit=Range(0, 1))
    return Catalogue(tuple(Group(name=g, parameters=(parameter,)) for g in groups))


def show_count(number: int) -> str:
    return f"{number:,}" if number < 1_000_000 else f"{number / 1e6:,.1f} M"


def show_duration(seconds: float) -> str:
    """Write seconds in the largest unit of which there are at least two."""
    for size, unit in UNITS:
        if seconds >= 2.0 * size:
            value = seconds / size
            return f"{value:.0f} {unit}" if unit == "s" else f"{value:.1f} {unit}"
    return f"{seconds:.0f} s"
