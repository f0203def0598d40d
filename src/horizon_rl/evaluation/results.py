"""Evaluations in numbers: the results that are printed and written."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from horizon_rl.evaluation import momentum, statics
from horizon_rl.evaluation.array_cache import ArrayCache, make_key, software
from horizon_rl.evaluation.control import drop_control
from horizon_rl.evaluation.curve import measure_curves
from horizon_rl.evaluation.evaluate import Evaluation, Evaluator, Progress
from horizon_rl.evaluation.statistics import wilson_interval
from horizon_rl.evaluation.suite import FrozenColumn, Suite
from horizon_rl.policies.load import EvaluatedPolicy, load_policy
from horizon_rl.policies.shipped import STAND
from horizon_rl.support.records import encode
from horizon_rl.task import FALL_CAUSES, SuccessCfg

SCHEMA = 1

Show = Callable[[str, str], Progress]
"""Takes the names of a policy and a suite; returns what is told of their progress."""


def evaluate_suite(
    evaluator: Evaluator,
    policies: Sequence[EvaluatedPolicy],
    suite: Suite,
    num_episodes: int | None,
    show: Show,
    *,
    with_floor: bool = True,
) -> tuple[list[Evaluation], list[dict[str, Any]]]:
    """Evaluate policies, and the one that holds the default pose as their floor.

    Returns:
        The policies' evaluations, and the same as `horizon eval --json` writes them.
    """
    # The floor comes last: a reader waits for the policy, not for it.
    todo = [*policies, *([load_policy(STAND)] if with_floor else [])]
    found = [
        evaluator.evaluate(policy, suite, num_episodes, show(policy.name, suite.name))
        for policy in todo
    ]
    stand = found.pop() if with_floor else None
    n, cache = num_episodes or suite.num_episodes, evaluator.cache
    impossible = {
        name: impossible_share(column, suite.success, n, cache)
        for name, column in suite.frozen.items()
    }
    context = {"software": software(), "device": str(evaluator.device)}
    return found, [to_json(e, stand, impossible, context) for e in found]


def impossible_share(
    column: FrozenColumn, success: SuccessCfg, n: int, cache: ArrayCache
) -> float:
    """Return the share of a column's first n scenarios that no walker can win."""
    key = make_key(kind="impossible", column=column.digest, success=encode(success))
    kept = cache.read(key, ["impossible"])
    if kept is None or len(kept["impossible"]) < n:
        scenarios = column.scenarios(n)
        by_momentum = momentum.impossible(scenarios, column.task, success)
        kept = {"impossible": statics.impossible(scenarios.pool) | by_momentum}
        cache.write(key, kept)
    return float(kept["impossible"][:n].mean())


def summaries(evaluation: Evaluation) -> dict[str, dict[str, Any]]:
    """Put every column in numbers, means over its episodes.

    Success comes with an interval over scenarios like these, which says nothing of
    training seeds; close is the share of episodes that succeed and track closely; length
    is a share of the longest episode, errors are in m/s and rad/s, and falls are shares
    of episodes that ended early, by cause.
    """
    found = {}
    for name, episodes in evaluation.columns.items():
        won = evaluation.won(name)
        close = won & (episodes.tracking_error <= evaluation.suite.success.close_error)
        found[name] = {
            "success": float(won.mean()),
            "interval": encode(wilson_interval(int(won.sum()), len(won))),
            "close": float(close.mean()),
            "episodes": len(won),
            "length": float(episodes.length.mean()) / evaluation.suite.task.max_steps,
            "tracking_error": float(episodes.tracking_error.mean()),
            "yaw_error": float(episodes.yaw_error.mean()),
            "falls": {
                cause: float(np.mean(episodes.cause == number))
                for number, cause in enumerate(FALL_CAUSES)
                if number > 0
            },
        }
    return found


def success_table(evaluation: Evaluation) -> np.ndarray:
    """Return which episodes are a success, [columns, scenarios], without the control."""
    names = drop_control(evaluation.columns)
    return np.stack([evaluation.won(name) for name in names])


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
        impossible: Per column the share that is impossible.
        context: Versions, device.
    """
    suite, policy = evaluation.suite, evaluation.policy
    found, floor = summaries(evaluation), summaries(stand) if stand else {}
    curves = measure_curves(evaluation, found)
    return {
        "schema": SCHEMA,
        "policy": policy.name,
        "policy_hash": policy.digest,
        "suite": {
            "name": suite.name,
            "draw": suite.draw,
            "hash": suite.digest,
            "severity": suite.severity,
        },
        "columns": {
            name: {
                **summary,
                "impossible": impossible.get(name),
                "stand": floor[name]["success"] if name in floor else None,
                "hash": suite.frozen[name].digest,
            }
            for name, summary in found.items()
        },
        **({"curve": curves} if curves else {}),
        "context": dict(context),
    }
