"""How a run is doing, on one screen of 80 columns."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from horizon_rl.runs.journal import Replay
from horizon_rl.runs.summary import Drift, Progress, RunSummary, Spent, Times
from horizon_rl.show.actions import ACTIONS, describe_undone
from horizon_rl.show.board import board
from horizon_rl.show.numbers import NONE, show_broken, show_count, show_duration
from horizon_rl.show.table import (
    Cell,
    FittedTable,
    Table,
    holds_path,
    print_table,
    tabulate,
)

STYLE = {"running": "bold green", "finished": "bold", "stopped": "bold yellow"}


def print_status(
    console: Console, summary: RunSummary, journal: Replay, *, is_shipped: bool = False
) -> None:
    """Print how a run is doing: head, frontiers, what its phases cost, the rest.

    A shipped run comes without its checkpoints, which is then no damage.
    """
    # Paths and commands are there to be copied: they are not wrapped.
    console.print(_headline(summary), soft_wrap=True)
    origin = describe_origin(summary)
    console.print(Text(origin), soft_wrap=holds_path(origin))
    if summary.resume:
        console.print(Text(f"Go on with: {summary.resume}"), soft_wrap=True)
        if summary.budget and summary.budget.spent:
            console.print("Its first budget is spent: add --steps or --minutes.")
    state = journal.state
    if summary.ended:
        state = replace(state, proposal=None, ended=summary.ended)
    coverage = {g: share for f in summary.frontiers for g, share in f.coverage.items()}
    console.print()
    console.print(board(state, journal.entries, coverage, journal.header.curriculum))
    console.print()
    if summary.phases:
        console.print(FittedTable(verdict_table({"": summary})))
        console.print()
    if summary.results:
        # It takes scipy, which a run without results need not wait for.
        from horizon_rl.show.scores import before_after_tables

        print_table(console, before_after_tables(summary.results)[0])
    console.print(FittedTable(_notes(summary, journal)))
    if found := summary.checkpoint:
        text = Text("checkpoint  ", style="bold")
        if is_shipped and not found.exists:
            text.append(f"{Path(found.path).name}, not kept", style="none")
            text.append(": the package holds the policy alone", style="none")
        else:
            missing = "" if found.exists else " (missing: its folder is not there)"
            text.append(found.path, style="none").append(missing, style="red")
        console.print(text, soft_wrap=holds_path(text.plain))


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
    if budget := summary.budget:
        limits = [f"{show_count(budget.steps)} env steps"] if budget.steps else []
        limits += [f"{budget.minutes:g} min"] if budget.minutes else []
        parts.append(f"{budget.share:.0%} of {' or '.join(limits)} spent")
    return ", ".join(parts)


def verdict_table(runs: Mapping[str, RunSummary]) -> Table:
    """Lay out phases and env steps by verdict, of one run or of several by label."""
    columns = [
        ("run", lambda row: row[0]),
        ("verdicts", lambda row: row[1]),
        ("phases", lambda row: str(row[2].phases)),
        ("env steps", lambda row: show_count(row[2].env_steps)),
        ("share", lambda row: f"{row[2].share:.0%}"),
        ("in probes", lambda row: _probe_share(row[2])),
    ]
    if len(runs) == 1:
        del columns[0]
    if not any(summary.kind == "training" for summary in runs.values()):
        del columns[-1]
    rows = [(label, *row) for label, run in runs.items() for row in _spent(run)]
    align = "lr" if len(runs) == 1 else "llr"
    return tabulate("Phases and env steps by verdict", rows, columns, align=align)


def _spent(summary: RunSummary) -> list[tuple[str, Spent]]:
    """List verdicts with what their phases cost, and all of them."""
    probes = [spent.probe_env_steps for spent in summary.by_action.values()]
    total = Spent(
        phases=summary.phases,
        env_steps=summary.env_steps,
        share=1.0,
        probe_env_steps=None if None in probes else sum(filter(None, probes)),
    )
    shown = [
        (ACTIONS[action].done, spent)
        for action, spent in summary.by_action.items()
        if spent.phases or action in ("commit", "rollback")
    ]
    return [*shown, ("all", total)]


def _probe_share(spent: Spent) -> str:
    if spent.probe_env_steps is None or not spent.env_steps:
        return NONE
    return f"{spent.probe_env_steps / spent.env_steps:.0%}"


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


def _notes(summary: RunSummary, journal: Replay) -> Table:
    """Lay out the rest, a line each."""
    met = summary.boundaries
    boundaries = "1 boundary" if met == 1 else f"{met} boundaries"
    levels = f"mean mastered level {summary.difficulty:.3f}, {boundaries} met"
    lines = {"frontiers": levels}
    if summary.standing != "finished" and summary.kind == "training":
        assert summary.proposal is not None
        phase = f"phase {summary.proposal.phase}"
        lines = {phase: _progress(summary.progress), **lines}
    if summary.by_action["rollback"].phases:
        lines["env steps"] = describe_undone(journal.entries)
    if summary.times:
        lines["time"] = _times(summary.times, summary.phases)
    if broken := show_broken(summary.unhealthy, summary.overflow):
        lines["simulator"] = broken
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
