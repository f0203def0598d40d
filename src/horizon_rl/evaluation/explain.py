"""Where a policy breaks: which values separate its failures from its successes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2_contingency, mannwhitneyu

from horizon_rl.evaluation.statistics import Interval, wilson_interval
from horizon_rl.evaluation.suite import FrozenColumn
from horizon_rl.task import EpisodeTable

NUM_BINS, NUM_WORST = 8, 5
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
    bins: tuple[Bin, ...]
    chance: float
    """Probability of bins as uneven as these if the quantity had nothing to do with
    success (chi-squared test): small is telling."""
    separation: float | None
    """Probability that a failed scenario has the larger value than a successful one:
    0.5 says nothing, 1 that failures lie above, 0 below. None if all or none failed."""


def explain(column: FrozenColumn, won: np.ndarray) -> tuple[Factor, ...]:
    """Relate success to every quantity that varies, the most telling first."""
    factors, decided = [], 0 < won.sum() < len(won)
    for name, (group, unit, values) in quantities(column, len(won)).items():
        if np.ptp(values) == 0.0:
            continue
        bins, chance, separation = bin_success(values, won), 1.0, None
        if decided:
            counts = np.array([(b.success * b.episodes, b.episodes) for b in bins])
            wins, episodes = counts.round().T
            found: Any = chi2_contingency([wins, episodes - wins])
            chance = float(found.pvalue)
            u = mannwhitneyu(values[~won], values[won], method="asymptotic").statistic
            separation = float(u) / ((~won).sum() * won.sum())
        factors.append(Factor(name, group, unit, values, bins, chance, separation))
    return tuple(sorted(factors, key=lambda f: f.chance))


def worst(episodes: EpisodeTable, won: np.ndarray) -> np.ndarray:
    """Return the numbers of lost scenarios, those first that ended first or tracked worst.

    With suite and column, a number is all it takes to run a scenario again.
    """
    lost = np.flatnonzero(~won)
    order = np.lexsort((-episodes.tracking_error[lost], episodes.length[lost]))
    return lost[order][:NUM_WORST]


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
                comes = column.push_steps[:n, push] < column.task.max_steps
                if comes.any():
                    found[f"|{name}| {push + 1}"] = (group, unit, speed * comes)
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


def bin_success(values: np.ndarray, won: np.ndarray) -> tuple[Bin, ...]:
    """Cut the range of `values` into equal stretches, and measure success in each."""
    edges = np.linspace(values.min(), values.max(), NUM_BINS + 1)
    episodes, wins = (np.histogram(v, edges)[0] for v in (values, values[won]))
    return tuple(
        Bin(float(low), float(high), int(n), float(k / n), wilson_interval(k, n))
        for low, high, n, k in zip(edges[:-1], edges[1:], episodes, wins, strict=True)
        if n
    )
