"""The table at the end of a run: its start and its end on a small suite."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.status import Status

from horizon_rl.cli.common import Terminal
from horizon_rl.domains import Catalogue
from horizon_rl.support.errors import needs_extra

with needs_extra("train"):
    from horizon_rl.evaluation.array_cache import ArrayCache
    from horizon_rl.evaluation.evaluate import Evaluator, Progress
    from horizon_rl.evaluation.suite import Column, spans_at
    from horizon_rl.evaluation.suite_file import load_suite
    from horizon_rl.policies.load import load_policy
    from horizon_rl.show.evaluation_tables import side_by_side

SEVERITY = 0.5


def print_before_after(
    before: Path,
    after: Path,
    groups: Sequence[str],
    catalogue: Catalogue,
    num_episodes: int,
    device: str,
) -> None:
    """Evaluate both on the groups of the run and on all together, and print it."""
    suite = load_suite("ood", SEVERITY, None, catalogue)
    columns = {column.name: column for column in suite.columns}
    # Groups beyond the paper's have no column in the suite.
    for name in groups:
        spans = spans_at(catalogue, {name: SEVERITY})
        columns.setdefault(name, Column(name=name, spans=spans))
    wanted = [columns[name] for name in groups]
    suite = replace(suite, columns=(*wanted, columns["all"]))
    num_episodes = min(num_episodes, suite.num_episodes)
    evaluator = Evaluator(ArrayCache(None), device)
    evaluations = {}
    for name, path in (("before", before), ("after", after)):
        with _telling(f"{name}: {num_episodes} fresh scenarios a column") as tell:
            policy = load_policy(str(path), name)
            evaluations[name] = [evaluator.evaluate(policy, suite, num_episodes, tell)]
    Terminal().print(side_by_side(evaluations, None, {}))


@contextmanager
def _telling(text: str) -> Iterator[Progress]:
    """Tell on stderr how far an evaluation is."""
    console = Console(stderr=True)
    status = console.status(text) if console.is_terminal else nullcontext()
    if not console.is_terminal:
        print(f"evaluating {text}", file=sys.stderr)

    def tell(column: str, done: int, total: int) -> None:
        if isinstance(status, Status):
            status.update(f"{text}, {column}: {done / total:.0%}")

    with status:
        yield tell
