"""A study: finished or running training runs, compared from their files alone.

Runs of one name are training seeds of one method, and the seed is the unit: every run
is put in numbers first, then these are averaged over seeds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from horizon_rl.curriculum.entry import lost_env_steps
from horizon_rl.evaluation.statistics import Spread, spread
from horizon_rl.evaluation.studies.diagnostic import Diagnostic, diagnose
from horizon_rl.evaluation.studies.gate_stability import (
    GateStability,
    measure_gate_stability,
)
from horizon_rl.evaluation.studies.plateau import LengthTrends, find_length_trends
from horizon_rl.evaluation.studies.recheck import Recheck, recheck
from horizon_rl.evaluation.success import (
    AREA,
    COLUMN,
    Curve,
    CurvePoint,
    Result,
    make_curves,
    match_results,
)
from horizon_rl.runs.read import RunFiles
from horizon_rl.support.errors import InputError

SCHEMA = 2


@dataclass(frozen=True, kw_only=True)
class Costs:
    """A run's phases and what they cost. Shares are None where files lack them."""

    phases: int
    commits: int
    rollbacks: int
    retreats: int
    """Failed phases whose weights were kept."""
    holds: int
    """Phases that were trained on."""
    env_steps: int
    """Of judged phases, rolled-back ones and probes included."""
    rolled_back_share: float | None
    """Share of env steps in phases that were rolled back, or on hold before that."""
    probe_share: float | None
    """Share of env steps in probes."""
    time_s: float | None
    train_time_share: float | None
    probe_time_share: float | None
    settle_time_share: float | None
    """Judging, writing the checkpoint and the journal, or restoring."""


@dataclass(frozen=True, kw_only=True)
class StudiedRun:
    """One run in numbers."""

    name: str
    label: str
    """Its name and seed; its directory too, where that does not tell it apart."""
    path: str
    seed: int | None
    finished: bool
    by_clock: bool
    """Its levels rose by the clock: coverage is what it was given, not what it won."""
    costs: Costs
    coverage: dict[str, float | None]
    """Of the groups it widened, at their mastered levels."""
    recheck: Recheck
    gate_stability: GateStability
    length_trends: LengthTrends
    ood_success: float | None
    """Success out of distribution: the area of `all`, or one severity of older files."""
    start_success: float | None
    """Success in `all` at severity 0.5, as the run measured it at its end: of the policy
    that it started from,"""
    end_success: float | None
    """and of its own."""
    scenarios: str | None
    """Hash of the scenarios that they were measured in."""


@dataclass(frozen=True, kw_only=True)
class MethodStudy:
    """The runs of one name together, mean and standard deviation over them."""

    name: str
    runs: int
    costs: dict[str, Spread | None]
    coverage: dict[str, Spread | None]
    gate_stability: dict[str, Spread | None]


@dataclass(frozen=True, kw_only=True)
class Study:
    """All numbers of the runs that are compared; as plain data, the `--json` interface."""

    schema: int
    runs: tuple[StudiedRun, ...]
    methods: tuple[MethodStudy, ...]
    curves: tuple[Curve, ...]
    success_measure: str
    """What `ood_success` of the runs is."""
    diagnostic: Diagnostic
    left_out_of_diagnostic: int
    """Runs without gate C, which are not pooled with those that have it."""

    @property
    def disagreements(self) -> int:
        """Phases whose record does not follow from their episodes."""
        return sum(len(run.recheck.disagreements) for run in self.runs)


def study(
    runs: Sequence[RunFiles],
    results: Sequence[Result] = (),
    points: Sequence[CurvePoint] = (),
) -> Study:
    """Put runs, their evaluations and the points of a cost curve together."""
    if not runs:
        raise InputError("name at least one run: a directory, or a journal")
    success = match_results(results, runs)
    labels = [run.label for run in runs]
    studied = tuple(
        StudiedRun(
            name=run.name,
            label=label if labels.count(label) == 1 else f"{label}, {run.path}",
            path=str(run.path),
            seed=run.seed,
            finished=run.finished,
            by_clock=run.journal.header.curriculum.clock is not None,
            costs=measure_costs(run),
            coverage=run.coverage(),
            recheck=recheck(run),
            # Its own stream: a run's numbers do not depend on what it is compared with.
            gate_stability=measure_gate_stability(run, np.random.default_rng(0)),
            length_trends=find_length_trends(run),
            ood_success=success.get(run.path),
            **_measured(run),
        )
        for run, label in zip(runs, labels, strict=True)
    )
    by_name: dict[str, list[StudiedRun]] = {}
    for run in studied:
        by_name.setdefault(run.name, []).append(run)
    gated = [r for r in runs if r.journal.header.curriculum.gates.preservation] or runs
    return Study(
        schema=SCHEMA,
        runs=studied,
        methods=tuple(
            MethodStudy(
                name=name,
                runs=len(mine),
                costs=_spreads([vars(run.costs) for run in mine]),
                coverage=_spreads([run.coverage for run in mine]),
                gate_stability=_spreads([vars(run.gate_stability) for run in mine]),
            )
            for name, mine in by_name.items()
        ),
        curves=make_curves(points) if points else (),
        success_measure=results[0].measure if results else AREA,
        diagnostic=diagnose([run.journal for run in gated]),
        left_out_of_diagnostic=len(runs) - len(gated),
    )


def _measured(run: RunFiles) -> dict[str, Any]:
    """Return what a run has measured of itself, if it has."""
    found = run.end_results
    start, end = (found.success(COLUMN) if found else None) or (None, None)
    digest = found.after["columns"][COLUMN].get("hash") if found and end else None
    return {"start_success": start, "end_success": end, "scenarios": digest}


def measure_costs(run: RunFiles) -> Costs:
    """Count a run's phases, environment steps and seconds."""
    entries, per_iteration = run.entries, run.steps_per_iteration
    actions = [entry.decision.action for entry in entries]
    total = sum(e.evidence.env_steps for e in entries)
    trained = sum(e.evidence.iterations for e in entries) * (per_iteration or 0)
    seconds = run.phase_times().sum(axis=0)
    time_s = float(seconds.sum())
    train, probe, settle = (seconds / time_s).tolist() if time_s else [None] * 3
    return Costs(
        phases=len(entries),
        commits=actions.count("commit"),
        rollbacks=actions.count("rollback"),
        retreats=actions.count("retreat"),
        holds=actions.count("hold"),
        # What a run starts with was spent by its teachers.
        env_steps=run.journal.state.env_steps,
        rolled_back_share=lost_env_steps(entries) / total if total else None,
        probe_share=(total - trained) / total if total and per_iteration else None,
        time_s=time_s or None,
        train_time_share=train,
        probe_time_share=probe,
        settle_time_share=settle,
    )


def _spreads(rows: Sequence[Mapping[str, float | None]]) -> dict[str, Spread | None]:
    """Average over seeds, key by key; a seed without a value is left out."""
    keys = dict.fromkeys(key for row in rows for key in row)
    values = {k: [v for r in rows if (v := r.get(k)) is not None] for k in keys}
    return {key: spread(known) if known else None for key, known in values.items()}
