"""A run of a grid in one record: what it was, what it cost, what it reached.

A record depends on the study and on the run's files alone, not on clocks, nor on where
and how often it was started.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from horizon_rl.curriculum.entry import lost_env_steps
from horizon_rl.evaluation.studies.diagnostic import (
    FrontierPhase,
    count_left_out,
    frontier_phases,
)
from horizon_rl.grid.study_file import PlannedRun
from horizon_rl.runs.read import RunFiles
from horizon_rl.runs.results import is_record
from horizon_rl.support.bounds import Amount, Bounded, EnvSteps, Seed
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import decode_part, decode_value, encode

SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class Reached(Bounded):
    """What tables take from a run's record, beside its evaluations."""

    run: str
    cell: str
    groups: tuple[str, ...]
    seed: Seed
    coverage: dict[str, Amount]
    finished: bool
    phases: EnvSteps
    env_steps: EnvSteps
    lost_env_steps: EnvSteps
    frontier_phases: tuple[FrontierPhase, ...]
    left_out: dict[str, EnvSteps]


def is_run_record(record: Any) -> bool:
    """Tell whether it has what tables need; there may be more."""
    try:
        decode_part(Reached, record)
        for found in record["evaluations"]:
            decode_value(float | None, found["mark"])
            decode_value(int, found["env_steps"])
            for curve in found.get("curve", {}).values():
                decode_value(float, curve["area"])
            if (
                not is_record(found)
                or not {"severity", "draw"} <= found["suite"].keys()
            ):
                return False
    except (AttributeError, KeyError, TypeError, InputError):
        return False
    return True


def make_record(
    plan: PlannedRun,
    run: RunFiles,
    evaluations: Sequence[Mapping[str, Any]],
    *,
    finished: bool,
) -> dict[str, Any]:
    """Put a run and its evaluations into a record, as plain data.

    Evaluations are as `horizon eval --json` writes them, each with `mark` and
    `env_steps`; in the record their policy is the run's cell.
    """
    state, journal = run.journal.state, run.journal
    return {
        "schema": SCHEMA,
        "run": plan.name,
        "cell": plan.cell,
        "method": plan.method,
        "groups": list(journal.header.groups),
        "setting": plan.setting,
        "seed": plan.seed,
        "settings": plan.settings,
        "start": run.context.get("start"),
        "version": journal.header.version,
        "finished": finished,
        "phases": len(run.entries),
        "env_steps": state.env_steps,
        "lost_env_steps": lost_env_steps(run.entries),
        "levels": dict(state.mastered),
        "coverage": run.coverage(),
        "frontier_phases": [encode(phase) for phase in frontier_phases(journal)],
        "left_out": count_left_out([journal]),
        "evaluations": [{**found, "policy": plan.cell} for found in evaluations],
    }
