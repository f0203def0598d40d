"""Distributions over instances: where a run's physical worlds come from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from horizon_rl.domains.catalogue import Catalogue, Ranges
from horizon_rl.domains.parameter import Range
from horizon_rl.support.errors import InputError

Instances = dict[str, np.ndarray]
"""Values by full parameter name: [n], or [n, draws] where a parameter has several; marks
by other names, see `Distribution`."""
BOUND = "bound"
"""Mark of instances that lie at a bound of the ranges: its number, from 1 on; 0: none."""
SEED = "seed"
"""Mark of instances that follow from seeds, so that they can be met again."""
TRAINS = "trains"
"""Mark of instances that a policy may train on, 1; it is only scored on the others, 0.
Where a distribution has it, a learner scores all. Else it trains on all, and scores none."""
SCORE = "score"
"""What a learner marks an instance with: mean over its steps of the positive value loss,
which is how much better a step went than the critic had expected, 0 if it went worse."""
TEACHER = "teacher"
"""Mark of instances that belong to one of several teachers: its number, from 0 on."""
MARKS = BOUND, SEED, TRAINS, SCORE, TEACHER
"""Marks that are not those of a group."""


class Distribution(Protocol):
    """A way to draw instances of a catalogue's parameters.

    A curriculum proposes one, so it is a value: a frozen dataclass of plain data that
    `support.records` writes to JSON and reads back.
    """

    def sample(
        self, catalogue: Catalogue, n: int, rng: np.random.Generator
    ) -> Instances:
        """Draw `n` instances; all randomness comes from `rng`.

        Under the name of a group, or one of `MARKS`, it may add a mark, [n] or [n, -]:
        what it chose in each instance, such as a level of the group's own. Marks come
        back with the episodes to a method whose `outcome_parameters` name them.
        """
        ...


@runtime_checkable
class LevelDistribution(Distribution, Protocol):
    """A distribution that can tell levels instead of values."""

    def sample_levels(
        self, n: int, rng: np.random.Generator
    ) -> tuple[Instances, Instances]:
        """Draw `n` instances for a learner that knows levels, but no parameters.

        Returns:
            How hard each instance is in every group, as a level; and the marks.
        """
        ...


@dataclass(frozen=True)
class AtLevels:
    """Uniform in the ranges that a catalogue has at given levels."""

    levels: Mapping[str, float]
    """Level in [0, 1] by group name; a group that is left out stays at level 0."""

    def sample(
        self, catalogue: Catalogue, n: int, rng: np.random.Generator
    ) -> Instances:
        return sample(catalogue, catalogue.ranges(self.levels), n, rng)

    def sample_levels(
        self, n: int, rng: np.random.Generator
    ) -> tuple[Instances, Instances]:
        return {group: np.full(n, level) for group, level in self.levels.items()}, {}


@dataclass(frozen=True)
class InRanges:
    """Uniform in given ranges; `Range(x, x)` sets the exact value x."""

    ranges: Mapping[str, Range]
    """Range by full parameter name, one for every parameter of the catalogue."""

    def sample(
        self, catalogue: Catalogue, n: int, rng: np.random.Generator
    ) -> Instances:
        return sample(catalogue, self.ranges, n, rng)


def sample(
    catalogue: Catalogue, ranges: Ranges, n: int, rng: np.random.Generator
) -> Instances:
    """Draw `n` instances uniformly from `ranges`.

    Every instance takes the same number of draws from `rng`, in the catalogue's
    order. So the first m of n instances are the instances of `sample(..., m, rng)`,
    and one seed gives the same relative position in a narrow and in a wide range,
    which is what makes two levels comparable.
    """
    draws = sum(p.draws for p in catalogue.parameters.values())
    return spread(catalogue, ranges, rng.random((n, draws)))


def spread(catalogue: Catalogue, ranges: Ranges, unit: np.ndarray) -> Instances:
    """Stretch numbers in [0, 1] to the ranges of all parameters, [n, all draws]."""
    parameters = catalogue.parameters
    if wrong := set(ranges) ^ set(parameters):
        raise InputError(
            f"missing or unknown parameters: {', '.join(sorted(wrong))}. Needs a range "
            f"for each of {', '.join(parameters)}"
        )
    instances, column = {}, 0
    for name, parameter in parameters.items():
        u = unit[:, column : column + parameter.draws]
        column += parameter.draws
        values = place(u, ranges[name].low, ranges[name].high)
        instances[name] = values[:, 0] if parameter.draws == 1 else values
    return instances


def spread_at(
    catalogue: Catalogue, levels: Mapping[str, np.ndarray], unit: np.ndarray
) -> Instances:
    """Stretch numbers in [0, 1], [n, all draws], to ranges at each instance's own levels.

    Args:
        catalogue: The parameters.
        levels: [n] by group, or by parameter; all else is at level 0.
        unit: Where in its range each draw lies.
    """
    instances, column = {}, 0
    for name, parameter in catalogue.parameters.items():
        level = levels.get(
            name, levels.get(name.partition(".")[0], np.zeros(len(unit)))
        )
        u = unit[:, column : column + parameter.draws]
        column += parameter.draws
        base, limit, t = parameter.baseline, parameter.limit, level[:, None]
        low = base.low + t * (limit.low - base.low)
        high = base.high + t * (limit.high - base.high)
        # Rounding must not carry a value past its limit.
        values = np.clip(place(u, low, high), limit.low, limit.high)
        instances[name] = values[:, 0] if parameter.draws == 1 else values
    return instances


def middle_instance(catalogue: Catalogue) -> Instances:
    """Return one instance: every parameter in the middle of its baseline range."""
    return {
        name: np.full(1 if p.draws == 1 else (1, p.draws), p.baseline.middle)
        for name, p in catalogue.parameters.items()
    }


def place(
    unit: np.ndarray, low: float | np.ndarray, high: float | np.ndarray
) -> np.ndarray:
    """Stretch numbers in [0, 1) to ranges."""
    # Rounding may step past `high` by one unit in the last place.
    return np.minimum(low + unit * (high - low), high)
