"""Sections that a run's own files fill: summary, frontiers, gates, verdicts."""

from collections.abc import Iterator
from statistics import fmean
from typing import Any

from horizon_rl.show.frontier_figure import frontier_figure
from horizon_rl.show.report.blocks import Block, Drawing, Facts, Fold, Section
from horizon_rl.show.report.figures import gate_figure
from horizon_rl.show.report.gather import Material, ReportedRun
from horizon_rl.show.status_board import (
    DONE,
    describe_origin,
    show_count,
    show_duration,
)
from horizon_rl.show.study_tables import (
    coverage_table,
    outcome_table,
    overturned_table,
    recheck_table,
    self_failure_table,
)
from horizon_rl.show.table import Cells, show_number

FEW = 3
"""So many runs are shown open; more would bury what comes after them."""


def summary_section(material: Material) -> Section:
    """What the runs are, and what they came to."""
    few = len(material.runs) <= FEW
    blocks: list[Block] = [_facts(run) for run in material.runs] if few else []
    if len(material.runs) > 1:
        blocks += [_runs_table(material), outcome_table(material.study)]
    return Section(id="summary", title="Summary", blocks=tuple(blocks))


def _facts(run: ReportedRun) -> Facts:
    summary, costs = run.read.summary, run.studied.costs
    pairs = [(f"{summary.difficulty:.3f}", "mean mastered level")]
    if (coverage := _mean_coverage(run)) is not None:
        pairs.append((f"{coverage:.0%}", "mean coverage of its groups"))
    if run.studied.ood_success is not None:
        pairs.append((f"{run.studied.ood_success:.1%}", "success, ood 0.5, all groups"))
    pairs += [
        (str(summary.phases), "phases judged"),
        (f"{costs.commits} / {costs.rollbacks}", "commits / rollbacks"),
        (show_count(summary.env_steps), "env steps"),
    ]
    if summary.times:
        pairs.append((show_duration(summary.times.total_s), "training and probes"))
    groups = ", ".join(run.files.journal.header.groups)
    origin = describe_origin(summary)
    words = [
        *([run.source.model.about] if run.source.model else []),
        f"{origin[:1].upper()}{origin[1:]}",
        f"Groups: {groups}",
        f"{summary.standing.capitalize()}: {summary.ended}"
        if summary.ended
        else summary.standing.capitalize(),
    ]
    return Facts(title=run.label, subtitle=". ".join(words) + ".", pairs=tuple(pairs))


def _mean_coverage(run: ReportedRun) -> float | None:
    known = [c for c in run.studied.coverage.values() if c is not None]
    return fmean(known) if known else None


def _runs_table(material: Material) -> Cells:
    rows = []
    for run in material.runs:
        summary = run.read.summary
        rows.append(
            (
                run.label,
                summary.standing,
                str(summary.phases),
                f"{run.studied.costs.commits} / {run.studied.costs.rollbacks}",
                show_count(summary.env_steps),
                f"{summary.difficulty:.3f}",
                show_number(_mean_coverage(run), ".0%"),
                show_number(run.studied.ood_success, ".1%"),
            )
        )
    headings = (
        *("run", "standing", "phases", "commits / rollbacks", "env steps"),
        *("mean level", "mean coverage", "ood 0.5, all"),
    )
    notes = coverage_table(material.study).notes
    return Cells("The runs", headings, tuple(rows), notes)


def frontiers_section(material: Material) -> Section:
    """Every attempt to widen a group, and where the frontiers stand."""
    return Section(
        id="frontiers",
        title="Frontiers",
        intro="A band is an attempt to widen one group of physical parameters, a star a "
        "commit, a cross a rollback; the line is the mastered level.",
        blocks=tuple(_by_run(material, _frontiers)),
    )


def _frontiers(run: ReportedRun) -> Iterator[Block]:
    groups = run.files.journal.header.groups
    if run.files.entries and groups:
        yield Drawing(
            name=f"frontiers-{run.slug}",
            about=f"Level of each group by phase, {run.label}",
            figure=frontier_figure(run.files.entries, groups),
        )
    cfg = run.files.journal.header.curriculum
    rows = [
        (
            group,
            f"{f.mastered:.3f}",
            show_number(f.coverage[group], ".1%"),
            f"{f.status} {f.rung}/{cfg.max_rungs}"
            if f.status == "recovery"
            else f.status,
            show_number(f.candidate, ".3f"),
            show_number(f.failed, ".3f"),
        )
        for f in run.read.summary.frontiers
        for group in f.groups
    ]
    headings = ("group", "mastered", "coverage", "status", "on trial", "failed")
    yield Cells(f"Where the frontiers stand, {run.label}", headings, tuple(rows))


def gates_section(material: Material) -> Section:
    """What every phase measured, and the limits it was held to."""
    return Section(
        id="gates",
        title="Gates by phase",
        intro="Gate L: long episodes and a small tracking error on the candidate. Gate C: "
        "error and return in the checkpoint's ranges, on the checkpoint's own "
        "scenarios, against what the committed policy did there.",
        blocks=tuple(_by_run(material, _gates)),
    )


def _gates(run: ReportedRun) -> Iterator[Block]:
    entries = run.files.entries
    if any(e.evidence.length is not None for e in entries):
        yield Drawing(
            name=f"gates-{run.slug}",
            about=f"Values of the gates by phase, with their limits, {run.label}",
            figure=gate_figure(entries, run.files.journal.header.curriculum.gates),
        )
    rows = tuple(
        (
            str(e.decision.phase),
            DONE[e.decision.action],
            f"{e.decision.verdict.score:.2f}",
            e.decision.reason,
        )
        for e in entries
    )
    table = Cells("", ("phase", "verdict", "score", "reason"), rows)
    yield Fold(title=f"All {len(rows)} verdicts in words", blocks=(table,))


def verdicts_section(material: Material) -> Section:
    """Whether the verdicts follow from the episodes, and how firm they are."""
    tables = (recheck_table, self_failure_table, overturned_table)
    found = (table(material.study) for table in tables)
    return Section(
        id="verdicts",
        title="Verdicts, computed again",
        intro="Not taken from the journal: the gates are evaluated once more, from the "
        "episodes on file.",
        blocks=tuple(cells for cells in found if cells.rows),
    )


def _by_run(material: Material, show: Any) -> Iterator[Block]:
    """Show each run; several in folds of their own, the first few open."""
    if len(material.runs) == 1:
        yield from show(material.runs[0])
        return
    for number, run in enumerate(material.runs):
        yield Fold(title=run.label, blocks=tuple(show(run)), is_open=number < FEW)
