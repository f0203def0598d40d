"""A run of a grid in one record: what it was, what it cost, what it reached.

A record depends on the study and on the run's files alone, not on clocks, nor on where
and how often it was started.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from horizon_rl.curriculum.entry import lost_env_steps
from horizon_rl.evaluation.studies.diagnostic import count_left_out, frontier_phases
from horizon_rl.grid.study_file import PlannedRun
from horizon_rl.runs.read import RunFiles
from horizon_rl.support.records import encode

SCHEMA = 1


def make_record(
    plan: PlannedRun,
    run: RunFiles,
    evaluations: Sequence[Mapping[str, Any]],
    *,
    finished: bool,
) -> dict[str, Any]:
    """Put a run and its evaluations into a record, as plain data.

    Args:
        plan: The run as the study has it.
        run: Its files.
        evaluations: As `horizon eval --json` writes them, each with `mark` and
            `env_steps`; in the record their policy is the run's cell.
        finished: Whether it is at its end.
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
