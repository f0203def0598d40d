"""Ranges whose bounds move on their own, and instances that lie at one of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from horizon_rl.domains.catalogue import Catalogue
from horizon_rl.domains.distribution import BOUND, Instances, spread
from horizon_rl.domains.parameter import Range
from horizon_rl.support.errors import InputError, require, unknown

LOW, HIGH = "low", "high"


@dataclass(frozen=True)
class AtBounds:
    """Uniform in ranges; a share of the instances lies at a bound, evenly one of all.

    At a group's bound every draw of its parameters is at one end of its range, each end
    as likely as the other. At one end of a parameter, all its draws are there. All else
    is uniform. The mark tells which of the bounds an instance lies at, if any.
    """

    bounds: Mapping[str, float]
    """Level of every bound: of a whole group, as `mass`, or of one end of a parameter, as
    `mass.scale.low`. What has none stays at level 0."""
    share: float
    """Share of the instances that lie at a bound."""

    def sample(
        self, catalogue: Catalogue, n: int, rng: np.random.Generator
    ) -> Instances:
        draws = [p.draws for p in catalogue.parameters.values()]
        unit = rng.random((n, 1 + sum(draws)))
        chosen, unit = self._choose(unit[:, 0]), unit[:, 1:]
        column = 0
        for name, parameter in catalogue.parameters.items():
            part = unit[:, column : column + parameter.draws]
            column += parameter.draws
            for index, bound in enumerate(self.bounds):
                rows, owner = chosen == index, bound.rpartition(".")[0]
                if bound == name.partition(".")[0]:
                    # Its own random number says which end.
                    part[rows] = part[rows] >= 0.5
                elif owner == name:
                    part[rows] = bound.endswith(HIGH)
        drawn = spread(catalogue, self.ranges(catalogue), unit)
        return {**drawn, BOUND: chosen + 1.0}

    def ranges(self, catalogue: Catalogue) -> dict[str, Range]:
        """Return the range of every parameter."""
        ends = [f"{name}.{end}" for name in catalogue.parameters for end in (LOW, HIGH)]
        known = *catalogue.names, *ends
        for bound, at in self.bounds.items():
            if bound not in known:
                raise InputError(unknown("bound", bound, known))
            require(f"level {bound}", at, 0.0, 1.0)

        def level(name: str, end: str) -> float:
            of_end = self.bounds.get(f"{name}.{end}", 0.0)
            return self.bounds.get(name.partition(".")[0], of_end)

        return {
            name: Range(
                parameter.range_at(level(name, LOW)).low,
                parameter.range_at(level(name, HIGH)).high,
            )
            for name, parameter in catalogue.parameters.items()
        }

    def sample_levels(
        self, n: int, rng: np.random.Generator
    ) -> tuple[Instances, Instances]:
        """See `LevelDistribution`: at a bound, its level; else uniform up to the mean."""
        groups = bounds_by_group(self.bounds)
        unit = rng.random((n, 1 + len(groups)))
        chosen, levels = self._choose(unit[:, 0]), {}
        for column, (group, bounds) in enumerate(groups.items(), start=1):
            mean = sum(self.bounds[bound] for bound in bounds) / len(bounds)
            levels[group] = mean * unit[:, column]
            for bound in bounds:
                at = chosen == list(self.bounds).index(bound)
                levels[group][at] = self.bounds[bound]
        return levels, {BOUND: chosen + 1.0}

    def _choose(self, unit: np.ndarray) -> np.ndarray:
        """Return the bound that each instance lies at, by its number; -1 is none."""
        at_bound = unit < self.share
        index = unit / max(self.share, 1e-12) * len(self.bounds)
        return np.where(at_bound, index, -1.0).astype(int)


def bounds_by_group(bounds: Iterable[str]) -> dict[str, list[str]]:
    """Return the bounds of every group that has any, in their order."""
    groups: dict[str, list[str]] = {}
    for bound in bounds:
        groups.setdefault(bound.partition(".")[0], []).append(bound)
    return groups
