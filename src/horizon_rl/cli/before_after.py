"""The table at the end of a run: its start and its end on a small suite."""

from collections.abc import Sequence
from pathlib import Path

from horizon_rl.cli.progress import show_progress
from horizon_rl.domains import Catalogue
from horizon_rl.runs.paths import checkpoint_folder
from horizon_rl.runs.results import BeforeAfter
from horizon_rl.support.errors import needs_extra

with needs_extra("train"):
    from horizon_rl.evaluation.array_cache import ArrayCache
    from horizon_rl.evaluation.control import CONTROL
    from horizon_rl.evaluation.evaluate import Evaluator
    from horizon_rl.evaluation.results import to_json
    from horizon_rl.evaluation.success import COLUMN, SEVERITY, SUITE
    from horizon_rl.evaluation.suite_file import load_suite
    from horizon_rl.policies.load import load_policy


def measure_before_after(
    checkpoint: Path,
    env_steps: int,
    groups: Sequence[str],
    catalogue: Catalogue,
    num_episodes: int,
    device: str,
) -> BeforeAfter:
    """Evaluate a run's start and end on its groups and on all together.

    Args:
        checkpoint: The run's end; its start lies beside it.
        env_steps: What the run has spent.
        groups: Those that it widened.
        catalogue: The run's.
        num_episodes: Scenarios a column, or as many as the suite has.
        device: Where to simulate.
    """
    suite = load_suite(SUITE, SEVERITY, None, catalogue)
    suite = suite.choose((CONTROL, *groups, COLUMN))
    num_episodes = min(num_episodes, suite.num_episodes)
    evaluator = Evaluator(ArrayCache(None), device)
    start = checkpoint_folder(checkpoint.parent.parent)
    records = {}
    with show_progress(2) as show:
        for name, path in (("before", start), ("after", checkpoint)):
            policy, tell = load_policy(str(path), name), show(name, suite.name)
            found = evaluator.evaluate(policy, suite, num_episodes, tell)
            records[name] = to_json(found, None, {}, {})
    return BeforeAfter(checkpoint=checkpoint.name, env_steps=env_steps, **records)
