"""Tables of a report that the terminal has not: runs, verdicts, settings."""

from collections.abc import Sequence
from statistics import fmean

from horizon_rl.runs.budget import Budget
from horizon_rl.runs.summary import RunSummary
from horizon_rl.show.actions import ACTIONS
from horizon_rl.show.numbers import show_count, show_number
from horizon_rl.show.report.gather import ReportedRun
from horizon_rl.show.status_board import describe_origin
from horizon_rl.show.table import Table, tabulate
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


def runs_table(
    runs: Sequence[ReportedRun], measure: str, notes: tuple[str, ...]
) -> Table:
    """Lay out the result of every run, success by its `measure`."""
    return tabulate(
        "The runs",
        runs,
        [
            ("run", lambda run: run.label),
            ("standing", lambda run: run.summary.standing),
            ("phases", lambda run: str(run.summary.phases)),
            ("commits / rollbacks", commits_and_rollbacks),
            ("env steps", lambda run: show_count(run.summary.env_steps)),
            ("mean level", lambda run: f"{run.summary.difficulty:.3f}"),
            ("mean coverage", lambda run: show_number(mean_coverage(run), ".0%")),
            (measure, lambda run: show_number(run.studied.ood_success, ".1%")),
        ],
        notes,
    )


def decisions_table(run: ReportedRun) -> Table:
    """Lay out all verdicts of a run in words."""
    return tabulate(
        "",
        [entry.decision for entry in run.files.entries],
        [
            ("phase", lambda d: str(d.phase)),
            ("verdict", lambda d: ACTIONS[d.action].done + " in part" * bool(d.levels)),
            ("score", lambda d: f"{d.verdict.score:.2f}"),
            ("reason", lambda d: d.reason),
        ],
        align="llrl",
    )


def settings_table(run: ReportedRun) -> Table:
    """Lay out all that a run was started with, by its journal."""
    settings = flatten(encode(run.files.journal.header))
    rows = []
    for name, value in settings.items():
        values = value if isinstance(value, list | tuple) else [value]
        rows.append((name, ", ".join(map(str, values))))
    return Table("", ("setting", "value"), tuple(rows), align="l")


def commits_and_rollbacks(run: ReportedRun) -> str:
    return f"{run.studied.costs.commits} / {run.studied.costs.rollbacks}"


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
    spent_s = times.total_s if times else 0.0
    # With the probes in between, where phases on record tell what these take.
    speed = summary.env_steps / spent_s if spent_s else lately
    under_way_s = under_way / lately if lately else 0.0
    whole = Budget(steps=budget.steps or 0, minutes=budget.minutes or 0.0)
    return whole.left_s(summary.env_steps + under_way, spent_s + under_way_s, speed)
