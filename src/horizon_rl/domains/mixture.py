"""Instances of several domains side by side."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from horizon_rl.domains.catalogue import Catalogue
from horizon_rl.domains.distribution import TEACHER, Instances, spread_at
from horizon_rl.support.errors import InputError


@dataclass(frozen=True)
class OneOf:
    """Every instance comes from one of several domains, all as likely; its mark says which."""

    domains: tuple[Mapping[str, float], ...]
    """Levels of each; a group that is left out stays at level 0."""

    def __post_init__(self):
        if not self.domains:
            raise InputError("a mixture of no domains; accepted: one or more")

    def sample(
        self, catalogue: Catalogue, n: int, rng: np.random.Generator
    ) -> Instances:
        for levels in self.domains:
            catalogue.coverage(
                levels
            )  # Refuses unknown groups and levels outside 0..1.
        draws = sum(p.draws for p in catalogue.parameters.values())
        # As in `sample`: the first m of n instances do not depend on n.
        unit = rng.random((n, 1 + draws))
        levels, marks = self._choose(unit[:, 0])
        return {**spread_at(catalogue, levels, unit[:, 1:]), **marks}

    def sample_levels(
        self, n: int, rng: np.random.Generator
    ) -> tuple[Instances, Instances]:
        return self._choose(rng.random(n))

    def _choose(self, unit: np.ndarray) -> tuple[Instances, Instances]:
        """Give instances [n] a domain each; return their levels, and the mark."""
        which = np.minimum(unit * len(self.domains), len(self.domains) - 1).astype(int)
        groups = dict.fromkeys(group for levels in self.domains for group in levels)
        levels = {
            group: np.array([each.get(group, 0.0) for each in self.domains])[which]
            for group in groups
        }
        return levels, {TEACHER: which.astype(float)}
