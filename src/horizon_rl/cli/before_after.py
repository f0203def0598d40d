"""The table at the end of a run: its start and its end on a small suite."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from horizon_rl.cli.common import Terminal
from horizon_rl.cli.progress import show_progress
from horizon_rl.domains import Catalogue
from horizon_rl.support.errors import needs_extra

with needs_extra("train"):
    from horizon_rl.evaluation.array_cache import ArrayCache
    from horizon_rl.evaluation.control import CONTROL
    from horizon_rl.evaluation.evaluate import Evaluator
    from horizon_rl.evaluation.results import to_json
    from horizon_rl.evaluation.suite import Column, spans_at
    from horizon_rl.evaluation.suite_file import load_suite
    from horizon_rl.policies.load import load_policy
    from horizon_rl.show.scores import score_suite, suite_table, tracking_table

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
    shown = (CONTROL, *groups, "all")
    suite = replace(suite, columns=tuple(columns[name] for name in shown))
    num_episodes = min(num_episodes, suite.num_episodes)
    evaluator = Evaluator(ArrayCache(None), device)
    records = []
    with show_progress(2) as show:
        for name, path in (("before", before), ("after", after)):
            policy, tell = load_policy(str(path), name), show(name, suite.name)
            found = evaluator.evaluate(policy, suite, num_episodes, tell)
            records.append(to_json(found, None, {}, {}))
    scores = score_suite(records)
    tables = suite_table(scores, intervals=False), tracking_table(scores)
    Terminal().print_tables(tables, markdown=False)
