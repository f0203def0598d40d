"""A study as tables."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from horizon_rl.evaluation.studies.diagnostic import LEFT_OUT, Diagnostic
from horizon_rl.evaluation.studies.plateau import LengthTrend
from horizon_rl.evaluation.studies.study import MethodStudy, Study
from horizon_rl.show.numbers import NONE, show_number, show_percent, show_spread
from horizon_rl.show.table import Table, tabulate


def study_tables(study: Study) -> list[Table]:
    """Lay out everything a study holds."""
    tables = [
        outcome_table(study),
        gains_table(study),
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
    return tabulate(
        "Results of the runs, mean ± s.d. over training seeds",
        study.methods,
        [
            ("method", lambda m: m.name),
            ("seeds", lambda m: str(m.runs)),
            *(
                (what, lambda m, what=what: show_spread(m.costs[what]))
                for what in ("phases", "commits", "rollbacks", "retreats", "holds")
                if what != "retreats" or any(r.costs.retreats for r in study.runs)
            ),
            ("env steps, M", lambda m: show_spread(m.costs["env_steps"], 1e-6, 2)),
        ],
        (f"Not at their end yet: {', '.join(going)}.",) if going else (),
    )


def gains_table(study: Study) -> Table:
    """Lay out what runs measured of themselves, start and end."""
    known = [run for run in study.runs if run.end_success is not None]
    notes = ["Column all of ood at severity 0.5, as measured at the end of the run."]
    if len({run.scenarios for run in known}) > 1:
        notes.append("Not the same scenarios: no run compares with another.")
    return tabulate(
        "Success before and after training, %",
        known,
        [
            ("run", lambda run: run.label),
            ("before", lambda run: show_percent(run.start_success)),
            ("after", lambda run: show_percent(run.end_success)),
        ],
        notes,
    )


def costs_table(study: Study) -> Table:
    def percent(key: str) -> Callable[[MethodStudy], str]:
        return lambda method: show_spread(method.costs[key], 100.0, 0)

    return tabulate(
        "Where env steps and time went, %, mean ± s.d. over training seeds",
        study.methods,
        [
            ("method", lambda m: m.name),
            ("steps\nrolled back", percent("rolled_back_share")),
            ("steps\nprobes", percent("probe_share")),
            ("hours", lambda m: show_spread(m.costs["time_s"], 1.0 / 3600.0, 2)),
            ("time\ntraining", percent("train_time_share")),
            ("time\nprobes", percent("probe_time_share")),
            ("time\nsettling", percent("settle_time_share")),
        ],
        ("Settling: judging, writing checkpoint and journal, or restoring.",),
    )


def coverage_table(study: Study, baseline: Mapping[str, float] | None = None) -> Table:
    """Lay out coverage by method and group, with a row for `baseline` if it is given."""
    groups = list(dict.fromkeys(group for run in study.runs for group in run.coverage))
    by_clock = dict.fromkeys(run.name for run in study.runs if run.by_clock)
    note = f"By the clock, so given and not mastered: {', '.join(by_clock)}."
    rows = [
        (m.name, *(show_spread(m.coverage.get(g), 100.0, 0) for g in groups))
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
    notes = []
    for run in study.runs:
        found = run.recheck
        if found.phases and not (found.checked or found.disagreements):
            notes.append(f"{run.path}: no evidence files, nothing to check.")
        notes += [
            f"{run.path}, phase {d.phase}: {d.what}." for d in found.disagreements
        ]
    return tabulate(
        "Verdicts computed again from the episodes on file",
        study.runs,
        [
            ("run", lambda run: run.label),
            ("phases", _number("recheck.phases")),
            ("checked", _number("recheck.checked")),
            ("agree", _number("recheck.agreed")),
            ("gate C\njudged", _number("recheck.gate_c")),
            ("cut\nshort", _number("recheck.aborted")),
            ("worst\ndifference", _number("recheck.worst_difference", ".0e")),
        ],
        notes,
    )


def self_failure_table(study: Study) -> Table:
    sizes: dict[str, set[int]] = {}
    for run in study.runs:
        if run.gate_stability.scenarios:
            sizes.setdefault(run.name, set()).add(run.gate_stability.scenarios)
    return tabulate(
        "How often a committed policy fails gate C against itself, %, mean ± s.d.",
        [m for m in study.methods if m.name in sizes],
        [
            ("method", lambda m: m.name),
            ("commits", lambda m: show_spread(m.gate_stability["commits"])),
            ("scenarios", lambda m: ", ".join(map(str, sorted(sizes[m.name])))),
            ("same\nscenarios", _stability("paired", 100.0)),
            ("as many\nothers", _stability("unpaired", 100.0)),
            ("two\nhalves", _stability("halves", 100.0)),
        ],
        (
            "On the same scenarios, as gate C compares: 0 by construction, where physics",
            "repeats. The others: without pairing, at that size and at half of it.",
        ),
    )


def overturned_table(study: Study) -> Table:
    def judged(method: MethodStudy) -> bool:
        found = (method.gate_stability[key] for key in ("passes", "failures"))
        return any(spread is not None and spread.mean > 0.0 for spread in found)

    return tabulate(
        "Gate C's verdicts that another draw of scenarios would overturn, mean ± s.d.",
        filter(judged, study.methods),
        [
            ("method", lambda m: m.name),
            ("passed", _stability("passes")),
            ("overturned, %", _stability("passes_overturned", 100.0)),
            ("failed", _stability("failures")),
            ("overturned, %", _stability("failures_overturned", 100.0)),
        ],
        ("Scenarios are resampled in pairs: both policies meet the same ones.",),
    )


def length_trends_table(study: Study) -> Table:
    def best(trend: LengthTrend | None) -> str:
        return show_percent(trend.best) if trend else NONE

    def has_plateau(trend: LengthTrend | None) -> str:
        return NONE if trend is None else "yes" if trend.plateau else "no"

    return tabulate(
        "Episode length in the run's own ranges, best moving mean, and success beyond",
        [r for r in study.runs if r.length_trends.rollouts or r.length_trends.window],
        [
            ("run", lambda run: run.label),
            ("metrics,\n%", lambda run: best(run.length_trends.rollouts)),
            ("no late\ngain", lambda run: has_plateau(run.length_trends.rollouts)),
            ("gate L's\nwindow, %", lambda run: best(run.length_trends.window)),
            ("no late\ngain", lambda run: has_plateau(run.length_trends.window)),
            (study.success_measure, _number("ood_success", ".1%")),
        ],
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
                *(curve.method, str(len(curve.seeds))),
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
    counts = {
        f"phase(s) {LEFT_OUT.get(why, why)}": count for why, count in d.left_out.items()
    }
    counts["run(s) without gate C"] = runs_left_out
    notes += [f"Left out: {count} {what}." for what, count in counts.items() if count]
    return tabulate(
        f"Recoverability diagnostic: {sum(row.phases for row in d.rows)} frontier "
        f"phases of {d.runs} run(s)",
        d.rows,
        [
            ("class", lambda row: row.outcome),
            ("phases", _number("phases")),
            ("episode\nfraction", _number("length", ".3f")),
            ("checkpoint\nreturn ratio", _number("checkpoint_ratio", ".3f")),
            ("frontier\ngain", _number("gain", "+.4f")),
            ("improvement\nrate", _number("improvement_rate", ".1%")),
        ],
        notes,
    )


def _number(path: str, form: str = "") -> Callable[[Any], str]:
    """Write the number at a path of fields, as in recheck.phases."""
    return lambda item: show_number(attrgetter(path)(item), form)


def _stability(key: str, scale: float = 1.0) -> Callable[[MethodStudy], str]:
    return lambda method: show_spread(method.gate_stability[key], scale)
