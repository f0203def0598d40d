"""Policies on a suite, beside the floor and what statics makes impossible."""

from collections.abc import Callable, Sequence
from typing import Any

from horizon_rl.evaluation.array_cache import ArrayCache, software
from horizon_rl.evaluation.evaluate import Evaluation, Evaluator, Progress
from horizon_rl.evaluation.results import to_json
from horizon_rl.evaluation.statics import impossible_share
from horizon_rl.evaluation.suite import Suite
from horizon_rl.policies.load import STAND, EvaluatedPolicy, load_policy

Show = Callable[[str, str], Progress]
"""Takes the names of a policy and a suite; returns what is told of their progress."""


def evaluate_suite(
    evaluator: Evaluator,
    cache: ArrayCache,
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
    impossible = {
        name: impossible_share(column, num_episodes or len(column), cache)
        for name, column in suite.frozen.items()
    }
    context = {"software": software(), "device": str(evaluator.device)}
    return found, [to_json(e, stand, impossible, context) for e in found]
