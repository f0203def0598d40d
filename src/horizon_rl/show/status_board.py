"""How a run is doing, on one screen of 80 columns."""

from collections.abc import Mapping
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from horizon_rl.runs.journal import Replay
from horizon_rl.runs.summary import (
    BudgetSummary,
    Drift,
    Progress,
    RunSummary,
    Spent,
    Times,
)
from horizon_rl.show.board import DONE, board
from horizon_rl.show.numbers import NONE, show_count, show_duration
from horizon_rl.show.table import Cell, Table, to_rich

STYLE = {"running": "bold green", "finished": "bold", "stopped": "bold yellow"}


def print_status(console: Console, summary: RunSummary, journal: Replay) -> None:
    """Print how a run is doing: head, frontiers, what its phases cost, the rest."""
    # Paths and commands are there to be copied: they are not wrapped.
    console.print(_headline(summary), soft_wrap=True)
    console.print(describe_origin(summary), soft_wrap=True, markup=False)
    if summary.resume:
        console.print(f"Go on with: {summary.resume}", soft_wrap=True, markup=False)
        if summary.budget and summary.budget.spent:
            console.print("Its first budget is spent: add --steps or --minutes.")
    state = journal.state
    if summary.ended:
        state = replace(state, proposal=None, ended=summary.ended)
    coverage = group_coverage(summary)
    console.print()
    console.print(board(state, journal.entries, coverage, journal.header.curriculum))
    console.print()
    if summary.phases:
        console.print(to_rich(verdict_table({"": summary})))
        console.print()
    console.print(to_rich(_notes(summary)))
    if found := summary.checkpoint:
        missing = "" if found.exists else " (missing: its folder is not there)"
        text = Text("checkpoint  ", style="bold").append(found.path, style="none")
        console.print(text.append(missing, style="red"), soft_wrap=True)


def group_coverage(summary: RunSummary) -> dict[str, float | None]:
    """Return the coverage of every group; None where the run has no catalogue."""
    return {g: share for f in summary.frontiers for g, share in f.coverage.items()}


def describe_origin(summary: RunSummary) -> str:
    """Say in a line what the run is: method, start, seed, budget."""
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


def verdict_table(runs: Mapping[str, RunSummary]) -> Table:
    """Lay out phases and env steps by verdict, of one run or of several by label."""
    with_probes = any(summary.kind == "training" for summary in runs.values())
    rows = [
        (label, name, *_costs(spent)[: 3 + with_probes])
        for label, summary in runs.items()
        for name, spent in _spent_by_verdict(summary).items()
    ]
    headings = ["run", "verdicts", "phases", "env steps", "share"]
    headings += ["in probes"] * with_probes
    is_one = len(runs) == 1
    return Table(
        "Phases and env steps by verdict",
        tuple(headings[is_one:]),
        tuple(row[is_one:] for row in rows),
        align="lr" if is_one else "llr",
    )


def _spent_by_verdict(summary: RunSummary) -> dict[str, Spent]:
    probes = [spent.probe_env_steps for spent in summary.by_action.values()]
    shown = {
        DONE[action]: spent
        for action, spent in summary.by_action.items()
        if spent.phases or action != "hold"
    }
    total = Spent(
        phases=summary.phases,
        env_steps=summary.env_steps,
        share=1.0,
        probe_env_steps=None if None in probes else sum(filter(None, probes)),
    )
    return {**shown, "all": total}


def _costs(spent: Spent) -> tuple[str, ...]:
    known = spent.probe_env_steps is not None and spent.env_steps
    probes = f"{(spent.probe_env_steps or 0) / spent.env_steps:.0%}" if known else NONE
    steps = show_count(spent.env_steps)
    return str(spent.phases), steps, f"{spent.share:.0%}", probes


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


def _budget(budget: BudgetSummary) -> str:
    limits = []
    if budget.steps:
        limits.append(f"{show_count(budget.steps)} env steps")
    if budget.minutes:
        limits.append(f"{budget.minutes:g} min")
    return f"{budget.share:.0%} of {' or '.join(limits)} spent"


def _notes(summary: RunSummary) -> Table:
    """Lay out the rest, a line each."""
    lines = {"frontiers": _levels(summary)}
    if summary.standing != "finished" and summary.kind == "training":
        assert summary.proposal is not None
        phase = f"phase {summary.proposal.phase}"
        lines = {phase: _progress(summary.progress), **lines}
    if summary.times:
        lines["time"] = _times(summary.times, summary.phases)
    if summary.anchor:
        lines["at level 0"] = _drift(summary.anchor)
    rows = tuple((Cell(f"{name:<10}", "bold"), text) for name, text in lines.items())
    return Table("", ("", ""), rows, align="l")


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
