"""Evaluate what a report lacks, and find where policies break.

Needs the simulator, unlike the rest of a report.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from horizon_rl.evaluation.array_cache import ArrayCache
from horizon_rl.evaluation.curve import curve_suite
from horizon_rl.evaluation.evaluate import Evaluator
from horizon_rl.evaluation.explain import explain
from horizon_rl.evaluation.results import Show, evaluate_suite
from horizon_rl.evaluation.success import COLUMN, SEVERITY, SUITE
from horizon_rl.evaluation.suite import Suite
from horizon_rl.evaluation.suite_file import load_suite
from horizon_rl.policies.load import EvaluatedPolicy, load_policy
from horizon_rl.show.evaluation_tables import TELLING
from horizon_rl.show.report.gather import FailureMap, Source
from horizon_rl.show.scores import describe_suite
from horizon_rl.support.errors import InputError
from horizon_rl.support.folders import cache_folder
from horizon_rl.task import EpisodeTable, succeeded

MIN_EPISODES = 64
"""A map of fewer scenarios shows nothing but chance."""
MAX_FACTORS = 6


def missing(
    sources: Sequence[Source], records: Sequence[Mapping[str, Any]]
) -> list[tuple[Source, Suite]]:
    """List the suites in which runs have not been evaluated."""
    return [
        (source, suite)
        for suite in (curve_suite(), load_suite("interventions"))
        for source in sources
        if not any(
            r["suite"]["name"] == suite.name and source.made(r["policy"])
            for r in records
        )
    ]


def evaluate(
    todo: Sequence[tuple[Source, Suite]], num_episodes: int, show: Show
) -> Iterator[dict[str, Any]]:
    """Run the first scenarios of every suite, with the floor; one result each."""
    evaluator = Evaluator(ArrayCache(cache_folder()), "auto")
    for source, suite in todo:
        n = min(num_episodes, suite.num_episodes)
        _, (record,) = evaluate_suite(evaluator, [_load(source)], suite, n, show)
        # By its path: runs of one name may have results from elsewhere.
        yield {**record, "policy": source.name if source.model else source.text}


def find_maps(
    sources: Sequence[Source], num_episodes: int = 0, show: Show | None = None
) -> list[FailureMap]:
    """Map the failures of policies whose episodes are on disk, or of all of them.

    Args:
        sources: Runs whose policies are mapped.
        num_episodes: Scenarios to run where fewer are on disk; 0 runs nothing.
        show: Called as in `evaluate`.
    """
    evaluator = Evaluator(ArrayCache(cache_folder()), "auto")
    suite = load_suite(SUITE, SEVERITY)
    suite = replace(suite, columns=tuple(c for c in suite.columns if c.name == COLUMN))
    maps = []
    for source in sources:
        try:
            policy = _load(source)
        except InputError:
            continue  # A rehearsal, or a run whose checkpoint is elsewhere.
        episodes = evaluator.kept(policy, suite.frozen[COLUMN])
        if num_episodes and (episodes is None or len(episodes) < num_episodes):
            tell = show(policy.name, suite.name) if show else None
            n = min(num_episodes, suite.num_episodes)
            episodes = evaluator.evaluate(policy, suite, n, tell).columns[COLUMN]
        if episodes is not None and len(episodes) >= MIN_EPISODES:
            maps.append(_map(source, suite, episodes))
    return maps


def _map(source: Source, suite: Suite, episodes: EpisodeTable) -> FailureMap:
    won = succeeded(episodes, suite.task.max_steps, suite.success)
    factors = explain(suite.frozen[COLUMN], won)
    return FailureMap(
        policy=source.name,
        source=source.text,
        title=f"{len(won)} scenarios of {describe_suite(SUITE, SEVERITY)}, "
        f"column {COLUMN}",
        success=float(won.mean()),
        factors=tuple([f for f in factors if f.chance < TELLING][:MAX_FACTORS]),
    )


def _load(source: Source) -> EvaluatedPolicy:
    # Whole: a directory may be called like a shipped policy.
    own = source.text if source.model else str(source.journal.parent.resolve())
    return load_policy(own, source.name)
