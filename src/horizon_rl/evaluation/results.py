"""An evaluation in numbers: the results that are printed and written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from horizon_rl.evaluation.evaluate import Evaluation
from horizon_rl.evaluation.statistics import Interval, wilson_interval
from horizon_rl.support.records import encode
from horizon_rl.task import FALL_CAUSES, EpisodeTable

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


def summaries(evaluation: Evaluation) -> dict[str, Summary]:
    """Put every column in numbers."""
    return {
        name: _summarise(
            episodes, evaluation.won(name), evaluation.suite.task.max_steps
        )
        for name, episodes in evaluation.columns.items()
    }


def _summarise(episodes: EpisodeTable, won: np.ndarray, longest: int) -> Summary:
    return Summary(
        success=float(won.mean()),
        interval=wilson_interval(int(won.sum()), len(won)),
        episodes=len(won),
        length=float(episodes.length.mean()) / longest,
        tracking_error=float(episodes.tracking_error.mean()),
        yaw_error=float(episodes.yaw_error.mean()),
        falls={
            cause: float(np.mean(episodes.cause == number))
            for number, cause in enumerate(FALL_CAUSES)
            if number > 0
        },
    )


def success_table(evaluation: Evaluation) -> np.ndarray:
    """Return which episodes are a success, [columns, scenarios]."""
    return np.stack([evaluation.won(name) for name in evaluation.columns])


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
        context: Versions, device.
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
