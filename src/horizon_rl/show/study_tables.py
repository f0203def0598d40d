"""A study as tables."""

from collections.abc import Mapping

from horizon_rl.evaluation.statistics import Spread
from horizon_rl.evaluation.studies.diagnostic import Diagnostic
from horizon_rl.evaluation.studies.plateau import LengthTrend
from horizon_rl.evaluation.studies.study import Study
from horizon_rl.evaluation.success import COLUMN, SEVERITY, SUITE
from horizon_rl.show.numbers import NONE, show_number, show_percent, show_spread
from horizon_rl.show.table import Table


def study_tables(study: Study) -> list[Table]:
    """Lay out everything a study holds."""
    tables = [
        outcome_table(study),
        costs_table(study),
        coverage_table(study),
        recheck_table(study),
        self_failure_table(study),
        overturned_table(study),
        length_trends_table(study),
        *([curves_table(study)] if study.curves else []),
        diagnostic_table(study.diagnostic, study.left_out_of_diagnostic),
    ]
    return [table for table in tables if table.rows]


def outcome_table(study: Study) -> Table:
    going = [run.label for run in study.runs if not run.finished]
    counts = ("phases", "commits", "rollbacks")
    return Table(
        "What the runs came to, mean ± s.d. over training seeds",
        ("method", "seeds", *counts, "env steps, M"),
        tuple(
            (
                *(m.name, str(m.runs)),
                *(show_spread(m.costs[key]) for key in counts),
                show_spread(m.costs["env_steps"], 1e-6, digits=2),
            )
            for m in study.methods
        ),
        (f"Not at their end yet: {', '.join(going)}.",) if going else (),
    )


def costs_table(study: Study) -> Table:
    columns = {
        "steps\nrolled back": ("rolled_back_share", 100.0, 0),
        "steps\nprobes": ("probe_share", 100.0, 0),
        "hours": ("time_s", 1.0 / 3600.0, 2),
        "time\ntraining": ("train_time_share", 100.0, 0),
        "time\nprobes": ("probe_time_share", 100.0, 0),
        "time\nsettling": ("settle_time_share", 100.0, 0),
    }
    return Table(
        "Where env steps and time went, %, mean ± s.d. over training seeds",
        ("method", *columns),
        tuple(
            (
                m.name,
                *(
                    show_spread(m.costs[key], scale, digits=digits)
                    for key, scale, digits in columns.values()
                ),
            )
            for m in study.methods
        ),
        ("Settling: judging, writing checkpoint and journal, or restoring.",),
    )


def coverage_table(study: Study, baseline: Mapping[str, float] | None = None) -> Table:
    """Lay out coverage by method and group, with a row for `baseline` if it is given."""
    groups = list(dict.fromkeys(group for run in study.runs for group in run.coverage))
    by_clock = dict.fromkeys(run.name for run in study.runs if run.by_clock)
    note = f"By the clock, so given and not mastered: {', '.join(by_clock)}."
    rows = [
        (m.name, *(show_spread(m.coverage.get(g), 100.0, digits=0) for g in groups))
        for m in study.methods
    ]
    if baseline:
        rows.append(("baseline", *(show_percent(baseline.get(g), 0) for g in groups)))
    return Table(
        "Coverage at the mastered levels, %, mean ± s.d. over training seeds",
        ("method", *groups),
        tuple(rows),
        (note,) if by_clock else (),
    )


def recheck_table(study: Study) -> Table:
    rows, notes = [], []
    for run in study.runs:
        r = run.recheck
        rows.append(
            (
                *(run.label, str(r.phases), str(r.checked), str(r.agreed)),
                *(
                    str(r.gate_c),
                    str(r.aborted),
                    show_number(r.worst_difference, ".0e"),
                ),
            )
        )
        if r.phases and not (r.checked or r.disagreements):
            notes.append(f"{run.path}: no evidence files, nothing to check.")
        notes += [f"{run.path}, phase {d.phase}: {d.what}." for d in r.disagreements]
    return Table(
        "Verdicts computed again from the episodes on file",
        (
            *("run", "phases", "checked", "agree", "gate C\njudged"),
            *("cut\nshort", "worst\ndifference"),
        ),
        tuple(rows),
        tuple(notes),
    )


def self_failure_table(study: Study) -> Table:
    sizes: dict[str, set[int]] = {}
    for run in study.runs:
        if run.gate_stability.scenarios:
            sizes.setdefault(run.name, set()).add(run.gate_stability.scenarios)
    return Table(
        "How often a committed policy fails gate C against itself, %, mean ± s.d.",
        (
            *("method", "commits", "scenarios", "same\nscenarios"),
            *("as many\nothers", "two\nhalves"),
        ),
        tuple(
            (
                *(m.name, show_spread(m.gate_stability["commits"])),
                ", ".join(map(str, sorted(sizes[m.name]))),
                *(
                    show_spread(m.gate_stability[rate], 100.0)
                    for rate in ("paired", "unpaired", "halves")
                ),
            )
            for m in study.methods
            if m.name in sizes
        ),
        (
            "On the same scenarios, as gate C compares: 0 by construction, where physics",
            "repeats. The others: without pairing, at that size and at half of it.",
        ),
    )


def overturned_table(study: Study) -> Table:
    return Table(
        "Gate C's verdicts that another draw of scenarios would overturn, mean ± s.d.",
        ("method", "passed", "overturned, %", "failed", "overturned, %"),
        tuple(
            (
                method.name,
                show_spread(f["passes"]),
                show_spread(f["passes_overturned"], 100.0),
                show_spread(f["failures"]),
                show_spread(f["failures_overturned"], 100.0),
            )
            for method in study.methods
            if _has((f := method.gate_stability)["passes"]) or _has(f["failures"])
        ),
        ("Scenarios are resampled in pairs: both policies meet the same ones.",),
    )


def length_trends_table(study: Study) -> Table:
    return Table(
        "Episode length in the run's own ranges, best moving mean, and success beyond",
        (
            *("run", "metrics,\n%", "no late\ngain", "gate L's\nwindow, %"),
            *("no late\ngain", f"{SUITE} {SEVERITY:g}\n{COLUMN}, %"),
        ),
        tuple(
            (
                run.label,
                *_show_trend(run.length_trends.rollouts),
                *_show_trend(run.length_trends.window),
                show_percent(run.ood_success),
            )
            for run in study.runs
            if run.length_trends.rollouts or run.length_trends.window
        ),
        (
            "No late gain: the last fifth of the run is not better than what came before",
            "by 1 % of the longest episode. A curriculum widens its ranges as it goes, so",
            "that its trend tells little either way.",
        ),
    )


def curves_table(study: Study) -> Table:
    steps = min(line[-1][0] for c in study.curves for line in c.seeds.values())
    shares = study.curves[0].at_cost
    return Table(
        "Success at equal cost, %, mean ± s.d. over training seeds",
        (
            *("method", "seeds"),
            *(f"{float(s) * steps / 1e6:.3g} M\nenv steps" for s in shares),
        ),
        tuple(
            (
                curve.method,
                str(len(curve.seeds)),
                *(show_spread(spread, 100.0) for spread in curve.at_cost.values()),
            )
            for curve in study.curves
        ),
    )


def diagnostic_table(d: Diagnostic, runs_left_out: int = 0) -> Table:
    ahead = "decision" if d.horizon == 1 else f"{d.horizon} decisions"
    rho = (d.length_correlation, d.score_correlation)
    length, score = (f"{show_number(c.rho, '.2f')} ({c.phases} phases)" for c in rho)
    notes = [
        f"Gain: change of difficulty over the next {ahead}. Its Spearman correlation",
        f"with the episode fraction: {length}, with the score: {score}.",
    ]
    for count, what in (
        (d.left_out["baseline"], "phase(s) at the baseline"),
        (d.left_out["clock"], "phase(s) by the clock"),
        (d.left_out["no_rollback"], "phase(s) without rollback"),
        (runs_left_out, "run(s) without gate C"),
    ):
        notes += [f"Left out: {count} {what}."] if count else []
    return Table(
        f"Recoverability diagnostic: {sum(row.phases for row in d.rows)} frontier "
        f"phases of {d.runs} run(s)",
        (
            *("class", "phases", "episode\nfraction", "checkpoint\nreturn ratio"),
            *("frontier\ngain", "improvement\nrate"),
        ),
        tuple(
            (
                *(row.outcome, str(row.phases), show_number(row.length, ".3f")),
                show_number(row.checkpoint_ratio, ".3f"),
                show_number(row.gain, "+.4f"),
                show_number(row.improvement_rate, ".1%"),
            )
            for row in d.rows
        ),
        tuple(notes),
    )


def _has(spread: Spread | None) -> bool:
    return spread is not None and spread.mean > 0.0


def _show_trend(trend: LengthTrend | None) -> tuple[str, str]:
    if trend is None:
        return NONE, NONE
    return show_percent(trend.best), "yes" if trend.plateau else "no"
