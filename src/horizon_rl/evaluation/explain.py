"""Where a policy breaks: which values separate its failures from its successes."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import mannwhitneyu

from horizon_rl.evaluation.statistics import Interval, wilson_interval
from horizon_rl.evaluation.suite import FrozenColumn
from horizon_rl.task import FALL_CAUSES, EpisodeTable

NUM_BINS = 8
AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Bin:
    """Scenarios whose value lies in one stretch."""

    low: float
    high: float
    episodes: int
    success: float
    interval: Interval


@dataclass(frozen=True, eq=False)
class Factor:
    """One quantity of the scenarios, and what it has to do with failing."""

    name: str
    """As in `mass.scale`, `com.offset x`, `|com.offset|`."""
    group: str
    unit: str
    values: np.ndarray
    """[n] one per scenario."""
    separation: float | None
    """Probability that a failed scenario has the larger value than a successful one:
    0.5 says nothing, 1 that failures lie above, 0 below. None if all or none failed."""
    bins: tuple[Bin, ...]

    @property
    def strength(self) -> float:
        """How far the separation is from chance, in [0, 0.5]."""
        return 0.0 if self.separation is None else abs(self.separation - 0.5)

    @property
    def unevenness(self) -> float:
        """Best bin's success less the worst's."""
        shares = [b.success for b in self.bins]
        return max(shares) - min(shares)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A scenario that was lost, so that it can be run and looked at again."""

    scenario: int
    """Its number in the column: with suite and column, all that it takes."""
    length: int
    tracking_error: float
    cause: str
    values: dict[str, float]
    """Of the factors that separate most."""


def explain(column: FrozenColumn, won: np.ndarray) -> tuple[Factor, ...]:
    """Relate success to every quantity that varies, the most telling first."""
    factors = []
    for name, (group, unit, values) in quantities(column, len(won)).items():
        if np.ptp(values) > 0.0:
            separation = _separation(values, won)
            bins = bin_success(values, won)
            factors.append(Factor(name, group, unit, values, separation, bins))
    return tuple(sorted(factors, key=lambda f: (-f.unevenness, f.name)))


def worst(
    episodes: EpisodeTable,
    won: np.ndarray,
    factors: tuple[Factor, ...],
    count: int = 5,
    num_factors: int = 3,
) -> tuple[Failure, ...]:
    """Return the failures that ended first, or tracked worst."""
    lost = np.flatnonzero(~won)
    order = np.lexsort((-episodes.tracking_error[lost], episodes.length[lost]))
    return tuple(
        Failure(
            scenario=int(i),
            length=int(episodes.length[i]),
            tracking_error=float(episodes.tracking_error[i]),
            cause=FALL_CAUSES[episodes.cause[i]],
            values={f.name: float(f.values[i]) for f in factors[:num_factors]},
        )
        for i in lost[order][:count]
    )


def quantities(column: FrozenColumn, n: int) -> dict[str, tuple[str, str, np.ndarray]]:
    """Name everything that may differ between scenarios: (group, unit, values [n]).

    A parameter drawn per axis counts per axis and as a length; one that is drawn for
    each joint as its mean distance from the middle of its range.
    """
    found = {}
    for name, parameter in column.catalogue.parameters.items():
        group, unit = name.partition(".")[0], parameter.unit
        values = column.instances[name][:n]
        if values.ndim == 1:
            found[name] = (group, unit, values)
        elif name == "disturbance.push_velocity":
            for push in range(values.shape[1] // 2):
                speed = np.linalg.norm(values[:, 2 * push : 2 * push + 2], axis=1)
                # A push after the last step never comes.
                if (column.push_steps[:n, push] < column.task.max_steps).any():
                    found[f"|{name}| {push + 1}"] = (group, unit, speed)
        elif values.shape[1] == 3:
            for axis, label in enumerate(AXES):
                found[f"{name} {label}"] = (group, unit, values[:, axis])
            found[f"|{name}|"] = (group, unit, np.linalg.norm(values, axis=1))
        else:
            away = np.abs(values - np.mean([parameter.limit.low, parameter.limit.high]))
            found[f"{name}, mean deviation"] = (group, unit, away.mean(axis=1))
    speed = np.linalg.norm(column.commands[:n, :, :2], axis=-1).mean(axis=1)
    turn = np.abs(column.commands[:n, :, 2]).mean(axis=1)
    found["commanded speed"] = ("command", "m/s", speed)
    found["commanded yaw rate"] = ("command", "rad/s", turn)
    return found


def bin_success(
    values: np.ndarray, won: np.ndarray, num_bins: int = NUM_BINS
) -> tuple[Bin, ...]:
    """Cut the range of `values` into equal stretches, and measure success in each."""
    edges = np.linspace(values.min(), values.max(), num_bins + 1)
    where = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, num_bins - 1)
    bins = []
    for number, (low, high) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
        inside = won[where == number]
        if len(inside):
            interval = wilson_interval(int(inside.sum()), len(inside))
            share = float(inside.mean())
            bins.append(Bin(float(low), float(high), len(inside), share, interval))
    return tuple(bins)


def _separation(values: np.ndarray, won: np.ndarray) -> float | None:
    lost = values[~won]
    if len(lost) in (0, len(values)):
        return None
    found = mannwhitneyu(lost, values[won], method="asymptotic")
    return float(found.statistic) / (len(lost) * int(won.sum()))
