"""Comparisons and explanations of evaluations as tables."""

from collections.abc import Mapping, Sequence

import numpy as np

from horizon_rl.evaluation.evaluate import Evaluation
from horizon_rl.evaluation.explain import NUM_BINS, Factor, worst
from horizon_rl.evaluation.results import success_table
from horizon_rl.evaluation.statistics import (
    improvement_probability,
    interquartile_mean,
    paired_difference,
)
from horizon_rl.show.numbers import NONE, show_difference, show_estimate, show_percent
from horizon_rl.show.scores import describe_suite
from horizon_rl.show.table import Table, tabulate
from horizon_rl.task import FALL_CAUSES

TELLING = 0.001
"""Probability of chance below which a factor is shown: some 30 are looked at."""

Methods = Mapping[str, Sequence[Evaluation]]
"""Evaluations by method, one for each of its training seeds."""


def comparison_table(methods: Methods) -> Table:
    """Compare every method with the first, the training seed being the unit."""
    (reference, ours), *_ = methods.items()
    suite = ours[0].suite
    successes = {
        name: np.stack([success_table(seed) for seed in seeds])
        for name, seeds in methods.items()
    }
    scores = {name: table.mean(axis=2) for name, table in successes.items()}
    rows = []
    for name, won in successes.items():
        iqm = interquartile_mean(scores[name], _rng(), whole_seeds=True)
        row = (name, str(len(won)), show_estimate(iqm))
        if name != reference:
            pair = scores[name], scores[reference]
            better = improvement_probability(*pair, _rng(), whole_seeds=True)
            x, y = (t.reshape(len(t), -1) for t in (won, successes[reference]))
            difference = paired_difference(x, y, _rng())
            row += (show_estimate(better), show_difference(difference), difference.unit)
        rows.append(row)
    where = describe_suite(suite.name, suite.severity, suite.draw)
    return Table(
        f"Against {reference}, over the columns of {where} but the control, "
        f"suite {suite.digest[:12]}",
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
    return tabulate(
        f"Success, %, in {column}, by value in equal steps from low to high",
        telling or factors[:3],
        [
            ("parameter", _name),
            ("from", lambda factor: f"{factor.values.min():.3g}"),
            ("to", lambda factor: f"{factor.values.max():.3g}"),
            ("success %", _shares),
            ("failures\nlie", _where),
        ],
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
        f"Worst scenarios of {column} ({suite.name}, {suite.draw}, seed {suite.seed})",
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


def _name(factor: Factor) -> str:
    name = f"{factor.name}, {factor.unit}" if factor.unit else factor.name
    # Beside eight shares a long name would not fit.
    return name if len(name) <= 15 else name.replace(".", ".\n")


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


def _rng() -> np.random.Generator:
    """Resample alike whatever else is printed."""
    return np.random.default_rng(0)
