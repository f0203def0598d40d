"""The table at the end of a run: its start and its end on a small suite."""

from horizon_rl.cli.progress import show_progress
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
    from horizon_rl.training.run import Run


def measure_before_after(run: Run, num_episodes: int, device: str) -> BeforeAfter:
    """Evaluate a run's start and end on its groups and on all together.

    Args:
        run: It has ended.
        num_episodes: Scenarios a column, or as many as the suite has.
        device: Where to simulate.
    """
    state, end = run.curriculum.state, run.checkpoint
    suite = load_suite(SUITE, SEVERITY, None, run.catalogue)
    suite = suite.choose((CONTROL, *state.mastered, COLUMN))
    num_episodes = min(num_episodes, suite.num_episodes)
    evaluator = Evaluator(ArrayCache(None), device)
    checkpoints, records = {"before": checkpoint_folder(run.path), "after": end}, {}
    with show_progress(2) as show:
        for name, path in checkpoints.items():
            policy, tell = load_policy(str(path), name), show(name, suite.name)
            found = evaluator.evaluate(policy, suite, num_episodes, tell)
            records[name] = to_json(found, None, {}, {})
    return BeforeAfter(checkpoint=end.name, env_steps=state.env_steps, **records)
