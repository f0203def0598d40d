"""Evaluation from Python: what `horizon eval` measures, as a value."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

from horizon_rl.api.policy import NumpyPolicy, find_policy
from horizon_rl.evaluation.draws import Draw
from horizon_rl.show.table import Table, print_table, to_markdown
from horizon_rl.support.errors import needs_extra
from horizon_rl.support.folders import cache_folder

with needs_extra("train"):
    from horizon_rl.evaluation.array_cache import ArrayCache
    from horizon_rl.evaluation.evaluate import Evaluator, Progress
    from horizon_rl.evaluation.results import evaluate_suite
    from horizon_rl.evaluation.suite import Suite
    from horizon_rl.evaluation.suite_file import load_suite
    from horizon_rl.show.scores import policy_table
    from horizon_rl.task import EpisodeTable


@dataclass(frozen=True, eq=False)
class EvaluationResult:
    """How a policy did in a suite; prints as a table."""

    record: dict[str, Any]
    """All figures, as `horizon eval --json` writes them."""
    episodes: dict[str, EpisodeTable]
    """Every episode, in the order of scenarios, by column."""

    @property
    def success(self) -> dict[str, float]:
        """Share of scenarios that are a success, by column."""
        return {name: c["success"] for name, c in self.record["columns"].items()}

    @property
    def table(self) -> Table:
        return policy_table(self.record)

    def __str__(self) -> str:
        text = StringIO()
        print_table(Console(file=text, width=100), self.table)
        return text.getvalue().rstrip()

    __repr__ = __str__

    def _repr_markdown_(self) -> str:
        """Let a notebook show it."""
        return to_markdown(self.table)


def evaluate(
    policy: NumpyPolicy | str | Path | Any,
    suite: str | Suite = "ood",
    *,
    severity: float | None = None,
    columns: str | Sequence[str] = (),
    episodes: int | None = None,
    robot: str | None = None,
    draw: Draw = "dev",
    floor: bool = False,
    fresh: bool = False,
    device: str = "auto",
    num_threads: int = 0,
    progress: Progress | None = None,
) -> EvaluationResult:
    """Evaluate a policy on frozen scenarios; finished ones are kept on disk.

    Args:
        policy: What `load` returns or takes.
        suite: ood, compositions, interventions, robots, field, ground, a .toml file, or a value.
        severity: Level of the groups that columns shift; 1 without it.
        columns: Which of the suite's to run, "mass,all" or a list; without it, all.
        episodes: Scenarios per column; without it, all, which takes minutes.
        robot: Robot in place of Go2.
        draw: Which scenarios: dev to tune and compare by, test to publish, once.
        floor: Run the policy that holds the default pose too.
        fresh: Run everything again, and neither use nor keep results on disk.
        device: cpu, cuda, cuda:1, ... or auto. Only the CPU repeats to the bit.
        num_threads: Threads on the CPU; 0: as OMP_NUM_THREADS says, else one per core.
        progress: Called with (column, env steps done, env steps at most).
    """
    if isinstance(suite, str):
        suite = load_suite(suite, severity, robot, None, draw)
    if isinstance(columns, str):
        columns = tuple(filter(None, columns.split(",")))
    suite = suite.choose(columns) if columns else suite
    cache = ArrayCache(None if fresh else cache_folder())
    evaluator = Evaluator(cache, device, num_threads)
    (found,), (record,) = evaluate_suite(
        evaluator,
        [find_policy(policy)],
        suite,
        episodes,
        lambda *names: progress or (lambda *done: None),
        with_floor=floor,
    )
    return EvaluationResult(record, found.columns)
