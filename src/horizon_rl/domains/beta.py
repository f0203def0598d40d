"""Levels that every instance draws for itself, from Beta distributions."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from horizon_rl.domains.catalogue import Catalogue
from horizon_rl.domains.distribution import Instances, spread_at
from horizon_rl.support.errors import InputError, needs_extra, unknown


@dataclass(frozen=True)
class BetaLevels:
    """Every instance draws its own levels, then each parameter uniformly at its level.

    The mark of a group, [n, -], are the levels that were drawn for it.
    """

    shapes: Mapping[str, tuple[float, float]]
    """Shape parameters a, b of a Beta distribution over levels in [0, 1], by group, or by
    full name of a parameter that has a level of its own. All else stays at level 0."""

    def __post_init__(self):
        for name, (a, b) in self.shapes.items():
            if not (0.0 < a < inf and 0.0 < b < inf):
                raise InputError(
                    f"shapes of {name} are {a:g} and {b:g}; accepted: numbers above 0"
                )

    def sample(
        self, catalogue: Catalogue, n: int, rng: np.random.Generator
    ) -> Instances:
        parameters = catalogue.parameters
        names = (*catalogue.names, *parameters)
        for name in self.shapes:
            if name not in names:
                raise InputError(unknown("group or parameter", name, names))
        # One block, a row an instance, levels by inversion: as in `sample`, the first m
        # of n instances do not depend on n, nor a relative position on the shapes.
        draws = sum(p.draws for p in parameters.values())
        unit = rng.random((n, len(self.shapes) + draws))
        levels = self._levels(unit)
        return {
            **_marks(levels),
            **spread_at(catalogue, levels, unit[:, len(self.shapes) :]),
        }

    def sample_levels(
        self, n: int, rng: np.random.Generator
    ) -> tuple[Instances, Instances]:
        """See `LevelDistribution`; a group's parameters count by their mean level."""
        marks = _marks(self._levels(rng.random((n, len(self.shapes)))))
        return {group: own.mean(axis=1) for group, own in marks.items()}, marks

    def _levels(self, unit: np.ndarray) -> Instances:
        """Return the levels behind numbers in [0, 1), [n, -], by what has them."""
        named = enumerate(self.shapes.items())
        return {name: quantile(shape, unit[:, k]) for k, (name, shape) in named}


def quantile(shape: tuple[float, float], share: float | np.ndarray) -> np.ndarray:
    """Return the level below which a share of a Beta distribution lies."""
    with needs_extra("doraemon"):
        from scipy.special import betaincinv
    return betaincinv(*shape, share)


def _marks(levels: Mapping[str, np.ndarray]) -> Instances:
    """Put the levels of a group side by side, [n, -]."""
    marks: dict[str, list[np.ndarray]] = {}
    for name, level in levels.items():
        marks.setdefault(name.partition(".")[0], []).append(level)
    return {group: np.stack(own, axis=1) for group, own in marks.items()}
