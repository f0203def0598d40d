"""Tables of a report that the terminal has not: runs, verdicts, settings."""

from collections.abc import Sequence
from statistics import fmean

from horizon_rl.runs.summary import RunSummary
from horizon_rl.show.board import DONE
from horizon_rl.show.numbers import show_count, show_number
from horizon_rl.show.report.gather import ReportedRun
from horizon_rl.show.status_board import describe_origin
from horizon_rl.show.table import Table
from horizon_rl.support.records import encode, flatten


def describe_run(run: ReportedRun) -> str:
    """Say what a run is and how it stands."""
    summary = run.summary
    origin, standing = describe_origin(summary), summary.standing.capitalize()
    sentences = [
        *([run.source.model.about] if run.source.model else []),
        f"{origin[:1].upper()}{origin[1:]}",
        f"Groups: {', '.join(run.files.journal.header.groups)}",
        f"{standing}: {summary.ended}" if summary.ended else standing,
    ]
    return ". ".join(sentences) + "."


def runs_table(runs: Sequence[ReportedRun], notes: tuple[str, ...]) -> Table:
    """Lay out what every run came to."""
    rows = tuple(
        (
            run.label,
            run.summary.standing,
            str(run.summary.phases),
            f"{run.studied.costs.commits} / {run.studied.costs.rollbacks}",
            show_count(run.summary.env_steps),
            f"{run.summary.difficulty:.3f}",
            show_number(mean_coverage(run), ".0%"),
            show_number(run.studied.ood_success, ".1%"),
        )
        for run in runs
    )
    headings = (
        *("run", "standing", "phases", "commits / rollbacks", "env steps"),
        *("mean level", "mean coverage", "ood 0.5, all"),
    )
    return Table("The runs", headings, rows, notes)


def decisions_table(run: ReportedRun) -> Table:
    """Lay out all verdicts of a run in words."""
    decisions = [entry.decision for entry in run.files.entries]
    rows = tuple(
        (str(d.phase), DONE[d.action], f"{d.verdict.score:.2f}", d.reason)
        for d in decisions
    )
    return Table("", ("phase", "verdict", "score", "reason"), rows, align="llrl")


def settings_table(run: ReportedRun) -> Table:
    """Lay out all that a run was started with, by its journal."""
    settings = flatten(encode(run.files.journal.header))
    rows = tuple(
        (
            name,
            ", ".join(map(str, value))
            if isinstance(value, list | tuple)
            else str(value),
        )
        for name, value in settings.items()
    )
    return Table("", ("setting", "value"), rows, align="l")


def mean_coverage(run: ReportedRun) -> float | None:
    """Return the mean over the run's groups; None where there is no catalogue."""
    known = [c for c in run.studied.coverage.values() if c is not None]
    return fmean(known) if known else None


def time_left_s(summary: RunSummary) -> float | None:
    """Estimate when the budget will be spent; the frontiers may be done before."""
    budget, progress, times = summary.budget, summary.progress, summary.times
    if budget is None:
        return None
    lately = progress.steps_per_s if progress else None
    under_way = (progress.env_steps or 0) if progress else 0
    # With the probes in between, where phases on record tell what these take.
    speed = summary.env_steps / times.total_s if times and times.total_s else lately
    estimates = []
    if budget.steps and speed:
        left = budget.steps - summary.env_steps - under_way
        estimates.append(left / speed)
    if budget.minutes:
        spent = (times.total_s if times else 0.0) + (
            under_way / lately if lately else 0.0
        )
        estimates.append(60.0 * budget.minutes - spent)
    return max(0.0, min(estimates)) if estimates else None
