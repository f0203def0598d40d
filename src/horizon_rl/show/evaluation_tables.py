"""Comparisons and explanations of evaluations as tables."""

from collections.abc import Mapping, Sequence

import numpy as np

from horizon_rl.evaluation.evaluate import Evaluation
from horizon_rl.evaluation.explain import NUM_BINS, Factor, worst
from horizon_rl.evaluation.results import success_table
from horizon_rl.evaluation.statistics import (
    Estimate,
    improvement_probability,
    interquartile_mean,
    paired_difference,
)
from horizon_rl.show.numbers import NONE, show_interval, show_percent
from horizon_rl.show.scores import describe_suite
from horizon_rl.show.table import Table
from horizon_rl.task import FALL_CAUSES

TELLING = 0.001
"""Probability of chance below which a factor is shown: some 30 are looked at."""

Methods = Mapping[str, Sequence[Evaluation]]
"""Evaluations by method, one for each of its training seeds."""


def comparison_table(methods: Methods) -> Table:
    """Compare every method with the first, the training seed being the unit."""
    (reference, ours), *others = methods.items()
    suite = ours[0].suite
    y, our_wins = _scores(ours), _wins(ours)
    iqm = interquartile_mean(y, _rng(), whole_seeds=True)
    rows: list[tuple[str, ...]] = [(reference, str(len(ours)), _estimate(iqm))]
    for name, seeds in others:
        x = _scores(seeds)
        iqm = interquartile_mean(x, _rng(), whole_seeds=True)
        better = improvement_probability(x, y, _rng(), whole_seeds=True)
        difference = paired_difference(_wins(seeds), our_wins, _rng())
        bounds = show_interval(difference.interval, "+.1f", ", ")
        rows.append(
            (
                *(name, str(len(seeds)), _estimate(iqm), _estimate(better)),
                f"{100 * difference.value:+.1f} [{bounds}]",
                difference.unit,
            )
        )
    where = describe_suite(suite.name, suite.severity)
    return Table(
        f"Against {reference}, over the columns of {where}, suite {suite.digest[:12]}",
        ("method", "seeds", "IQM, %", "P(better), %", "difference,\npoints", "by"),
        tuple(rows),
    )


def factors_table(column: str, factors: Sequence[Factor]) -> Table:
    """Lay out success by bins of each telling factor, at least the first three."""
    telling = [f for f in factors if f.chance < TELLING]
    note = f"Even these tell nothing (p >= {TELLING:g})."
    if telling:
        rest = len(factors) - len(telling)
        note = f"{rest} other quantities tell nothing (p >= {TELLING:g})."
    rows = []
    for factor in telling or factors[:3]:
        name = f"{factor.name}, {factor.unit}" if factor.unit else factor.name
        rows.append(
            (
                # Beside eight shares a long name would not fit.
                name if len(name) <= 15 else name.replace(".", ".\n"),
                *(f"{v:.3g}" for v in (factor.values.min(), factor.values.max())),
                _shares(factor),
                _where(factor),
            )
        )
    return Table(
        f"Success, %, in {column}, by value in equal steps from low to high",
        ("parameter", "from", "to", "success %", "failures\nlie"),
        tuple(rows),
        (note,),
    )


def failures_table(
    evaluation: Evaluation, column: str, factors: Sequence[Factor]
) -> Table:
    """Lay out the worst scenarios, with what it takes to see them again."""
    suite, episodes, factors = evaluation.suite, evaluation.columns[column], factors[:3]
    headings = (
        "scenario",
        "steps",
        "error\nm/s",
        "fell\nby",
        *(f.name for f in factors),
    )
    return Table(
        f"Worst scenarios of {column} (suite {suite.name}, seed {suite.seed})",
        # Three long names of parameters side by side would not fit.
        tuple(heading.replace(".", ".\n") for heading in headings),
        tuple(
            (
                *(str(i), str(episodes.length[i]), f"{episodes.tracking_error[i]:.2f}"),
                FALL_CAUSES[episodes.cause[i]],
                *(f"{factor.values[i]:.3g}" for factor in factors),
            )
            for i in worst(episodes, evaluation.won(column))
        ),
        align="r",
    )


def _shares(factor: Factor) -> str:
    """Write success in every step of the range, a dash where no scenario lies."""
    low, width = factor.values.min(), np.ptp(factor.values) / NUM_BINS
    shares = [NONE] * NUM_BINS
    for b in factor.bins:
        shares[round((b.low - low) / width)] = show_percent(b.success, 0)
    return " ".join(f"{share:>3}" for share in shares)


def _where(factor: Factor) -> str:
    if factor.separation is None:
        return NONE
    side = "high" if factor.separation > 0.5 else "low"
    return f"{side} ({max(factor.separation, 1.0 - factor.separation):.2f})"


def _scores(seeds: Sequence[Evaluation]) -> np.ndarray:
    return np.stack([success_table(seed).mean(axis=1) for seed in seeds])


def _wins(seeds: Sequence[Evaluation]) -> np.ndarray:
    return np.stack([success_table(seed).ravel() for seed in seeds])


def _estimate(estimate: Estimate) -> str:
    value, interval = show_percent(estimate.value), estimate.interval
    return f"{value} [{show_interval(interval, '.1f', ', ')}]" if interval else value


def _rng() -> np.random.Generator:
    """Resample alike whatever else is printed."""
    return np.random.default_rng(0)
