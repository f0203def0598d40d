"""What an evaluation says, in numbers: the results that are printed and written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from horizon_rl.evaluation.evaluate import Evaluation
from horizon_rl.evaluation.statistics import Interval, wilson_interval
from horizon_rl.support.records import encode
from horizon_rl.task import FALL_CAUSES, EpisodeTable, SuccessCfg, succeeded

SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One column in numbers."""

    success: float
    """Share of episodes."""
    interval: Interval
    """Of that share, over scenarios like these: it says nothing of training seeds."""
    episodes: int
    length: float
    """Mean share of the longest episode that was completed."""
    tracking_error: float
    """Mean over episodes, m/s."""
    yaw_error: float
    """Mean over episodes, rad/s."""
    falls: dict[str, float]
    """Share of episodes that ended early, by cause."""


def summarise(episodes: EpisodeTable, longest: int, success: SuccessCfg) -> Summary:
    """Put a column's episodes in numbers, `longest` being in control steps."""
    n, won = len(episodes), succeeded(episodes, longest, success)
    return Summary(
        success=float(won.mean()),
        interval=wilson_interval(int(won.sum()), n),
        episodes=n,
        length=float(episodes.length.mean()) / longest,
        tracking_error=float(episodes.tracking_error.mean()),
        yaw_error=float(episodes.yaw_error.mean()),
        falls={
            cause: float(np.mean(episodes.cause == number))
            for number, cause in enumerate(FALL_CAUSES)
            if number > 0
        },
    )


def summaries(evaluation: Evaluation) -> dict[str, Summary]:
    """Summarise every column."""
    suite = evaluation.suite
    return {
        name: summarise(table, suite.task.max_steps, suite.success)
        for name, table in evaluation.columns.items()
    }


def success_table(evaluation: Evaluation) -> np.ndarray:
    """Return who won what, [columns, scenarios], as booleans."""
    suite = evaluation.suite
    return np.stack(
        [
            succeeded(table, suite.task.max_steps, suite.success)
            for table in evaluation.columns.values()
        ]
    )


def to_json(
    evaluation: Evaluation,
    stand: Evaluation | None,
    impossible: Mapping[str, float],
    context: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the results as plain data: the `--json` interface.

    Args:
        evaluation: The policy's.
        stand: That of the policy that holds the default pose, if it was run.
        impossible: Per column the share that statics makes impossible.
        context: How it came about: versions, device.
    """
    suite, policy = evaluation.suite, evaluation.policy
    floor = summaries(stand) if stand else {}
    columns = {}
    for name, summary in summaries(evaluation).items():
        columns[name] = {
            **encode(summary),
            "impossible": impossible.get(name),
            "stand": floor[name].success if name in floor else None,
            "hash": suite.frozen[name].digest,
        }
    return {
        "schema": SCHEMA,
        "policy": policy.name,
        "policy_hash": policy.digest,
        "suite": {"name": suite.name, "hash": suite.digest, "severity": suite.severity},
        "columns": columns,
        "context": dict(context),
    }
