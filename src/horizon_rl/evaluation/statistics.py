"""Statistics over training seeds: what five runs of a method allow to be said.

The training seed is the unit. Scores of a method are an array [seeds, columns] of success
fractions, a column being one condition of a suite. IQM, probability of improvement
and the stratified bootstrap are those of Agarwal et al. (2021), "Deep Reinforcement
Learning at the Edge of the Statistical Precipice".
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm, trim_mean

from horizon_rl.support.errors import InputError

CONFIDENCE = 0.95
NUM_RESAMPLES = 5000


@dataclass(frozen=True)
class Interval:
    """A 95 % interval."""

    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Mean and standard deviation of one column over seeds."""

    mean: float
    sd: float | None
    """Sample standard deviation (n - 1); None for one seed, which shows no spread."""
    seeds: int

    def __str__(self) -> str:
        """Print success as the paper does, "69.3 ± 2.8" per cent."""
        mean = f"{100.0 * self.mean:.1f}"
        return mean if self.sd is None else f"{mean} ± {100.0 * self.sd:.1f}"


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number computed over seeds."""

    value: float
    interval: Interval | None
    """By bootstrap over seeds; None where a method has only one."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Mean of X minus mean of Y on the same scenarios."""

    value: float
    interval: Interval
    unit: Literal["seed", "scenario"]
    """What was resampled. By seed the interval speaks of two methods; by scenario only
    of the checkpoints at hand, on scenarios like these."""


def spread_by_column(scores: ArrayLike) -> tuple[Spread, ...]:
    """Return mean and standard deviation over seeds for every column."""
    (table,) = _tables(scores)
    return tuple(
        Spread(
            mean=float(column.mean()),
            sd=float(column.std(ddof=1)) if len(column) > 1 else None,
            seeds=len(column),
        )
        for column in table.T
    )


def spread(values: Iterable[float]) -> Spread:
    """Return mean and standard deviation over seeds of one column."""
    return spread_by_column(np.array([*values], float)[:, None])[0]


def interquartile_mean(
    scores: ArrayLike, rng: np.random.Generator, *, whole_seeds: bool = False
) -> Estimate:
    """Return the mean of the middle half of all scores, seeds and columns together.

    A quarter of the scores, rounded down, is cut off at either end.

    Args:
        scores: [seeds, columns].
        rng: Source of the resampling.
        whole_seeds: A resampled seed brings all its columns along. Otherwise seeds are
            drawn in every column independently, as in Agarwal et al.; that is too
            narrow where a seed that does well in one column does well in others.
    """

    def iqm(table: np.ndarray) -> np.ndarray:
        flat = table.reshape(*table.shape[:-2], -1)
        return np.asarray(trim_mean(flat, 0.25, axis=-1))

    return _estimate(iqm, _tables(scores), rng, whole_seeds)


def improvement_probability(
    x: ArrayLike, y: ArrayLike, rng: np.random.Generator, *, whole_seeds: bool = False
) -> Estimate:
    """Return the probability that a seed of X beats a seed of Y, mean over columns.

    In each column it is the share of pairs (one seed of X, one of Y) that X wins, a tie
    counting half: Mann and Whitney's U over the number of pairs. `whole_seeds` as in
    `interquartile_mean`.
    """

    def share_won(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        ours, theirs = x[..., :, None, :], y[..., None, :, :]
        won = (ours > theirs) + 0.5 * (ours == theirs)
        return won.mean(axis=(-3, -2, -1))

    return _estimate(share_won, _tables(x, y), rng, whole_seeds)


def paired_difference(
    x: ArrayLike, y: ArrayLike, rng: np.random.Generator
) -> Difference:
    """Return how much better X is than Y on the same scenarios, with an interval.

    Args:
        x: Success of X, [seeds, scenarios].
        y: Success of Y on these scenarios, in this order, [seeds, scenarios].
        rng: Source of the resampling.
    """
    ours, theirs = _tables(x, y)
    if min(len(ours), len(theirs)) > 1:
        unit = "seed"
        # All scenarios stay in: a seed is its mean over them.
        by_seed = (table.mean(axis=1, keepdims=True) for table in (ours, theirs))
        drawn, drawn_theirs = (_resample(means, rng) for means in by_seed)
        differences = drawn.mean(axis=(1, 2)) - drawn_theirs.mean(axis=(1, 2))
    else:
        unit = "scenario"
        # Pairs stay together: what makes a scenario hard is hard for both.
        pairs = (ours.mean(axis=0) - theirs.mean(axis=0))[:, None]
        differences = _resample(pairs, rng).mean(axis=(1, 2))
    value = float(ours.mean() - theirs.mean())
    return Difference(value=value, interval=_percentiles(differences), unit=unit)


def wilson_interval(successes: float, episodes: float) -> Interval:
    """Return Wilson's interval for a share of independent episodes."""
    z, share = float(norm.ppf(0.5 + 0.5 * CONFIDENCE)), successes / episodes
    middle = share + 0.5 * z * z / episodes
    reach = z * sqrt(share * (1.0 - share) / episodes + (0.5 * z / episodes) ** 2)
    scale = 1.0 + z * z / episodes
    # Rounding may step past the ends.
    low, high = (middle - reach) / scale, (middle + reach) / scale
    return Interval(max(low, 0.0), min(high, 1.0))


def share_interval(shares: ArrayLike) -> Interval:
    """Return Wilson's interval for the mean of independent shares in [0, 1].

    It is that of as many yes-or-no episodes as would have the same standard error: a
    scenario that counts at several severities tells more than one episode.
    """
    table = np.asarray(shares, dtype=np.float64)
    mean, variance = float(table.mean()), float(table.var())
    weight = mean * (1.0 - mean) / variance if variance > 0.0 else 1.0
    episodes = weight * table.size
    return wilson_interval(mean * episodes, episodes)


def _estimate(
    statistic: Callable[..., np.ndarray],
    tables: tuple[np.ndarray, ...],
    rng: np.random.Generator,
    whole_seeds: bool,
) -> Estimate:
    """Apply a map of [..., seeds, columns] to [...], also to resampled tables."""
    interval = None
    if min(map(len, tables)) > 1:
        drawn = (_resample(table, rng, whole_seeds=whole_seeds) for table in tables)
        interval = _percentiles(statistic(*drawn))
    return Estimate(value=float(statistic(*tables)), interval=interval)


def _resample(
    table: np.ndarray, rng: np.random.Generator, *, whole_seeds: bool = True
) -> np.ndarray:
    """Draw rows with replacement: [seeds, columns] to [resamples, seeds, columns]."""
    rows, columns = table.shape
    drawn = 1 if whole_seeds else columns
    ids = rng.integers(rows, size=(NUM_RESAMPLES, rows, drawn))
    return table[ids, np.arange(columns)]


def _percentiles(values: np.ndarray) -> Interval:
    tail = 0.5 * (1.0 - CONFIDENCE)
    low, high = np.quantile(values, [tail, 1.0 - tail]).tolist()
    return Interval(low, high)


def _tables(*scores: ArrayLike) -> tuple[np.ndarray, ...]:
    """Read tables [seeds, columns] of the same columns."""
    tables = tuple(np.asarray(table, dtype=float) for table in scores)
    shapes = [table.shape for table in tables]
    if any(len(s) != 2 or 0 in s or s[1] != shapes[0][-1] for s in shapes):
        raise InputError(
            f"scores of shape {' and '.join(map(str, shapes))}; accepted: [seeds, "
            "columns or scenarios], at least one of each, the same ones for both methods"
        )
    if not all(np.isfinite(table).all() for table in tables):
        raise InputError("scores are not all finite")
    return tables
