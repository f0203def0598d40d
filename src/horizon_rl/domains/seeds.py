"""Instances that follow from seeds, so that they can be met again."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from horizon_rl.domains.catalogue import Catalogue
from horizon_rl.domains.distribution import SEED, TRAINS, Instances, spread_at
from horizon_rl.support.errors import InputError, unknown

NUM_SEEDS = 1 << 31
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio: consecutive numbers land far apart."""


@dataclass(frozen=True)
class FromSeeds:
    """Known instances again, and new ones; a policy trains on the known ones only.

    A seed gives every group a level, uniform in [0, 1], and every parameter a place in
    its range at that level. Marks are the seed, and which instances train.
    """

    groups: tuple[str, ...]
    """Groups that have a level; the others stay at level 0."""
    seeds: tuple[int, ...] = ()
    """Seeds of known instances."""
    weights: tuple[float, ...] = ()
    """How likely each of them is, relative to the others."""
    share: float = 0.0
    """Share of the instances that are known ones."""

    def __post_init__(self):
        if len(self.seeds) != len(self.weights) or (self.share and not self.seeds):
            sizes = f"{len(self.seeds)} seeds and {len(self.weights)} weights"
            raise InputError(
                f"{sizes}, share {self.share:g}; accepted: as many of each"
            )

    def sample(
        self, catalogue: Catalogue, n: int, rng: np.random.Generator
    ) -> Instances:
        for group in self.groups:
            if group not in catalogue.names:
                raise InputError(unknown("group", group, catalogue.names))
        marks = self._choose(n, rng)
        draws = sum(p.draws for p in catalogue.parameters.values())
        unit = unit_numbers(marks[SEED], len(self.groups) + draws)
        levels = dict(zip(self.groups, unit.T, strict=False))
        return {**spread_at(catalogue, levels, unit[:, len(self.groups) :]), **marks}

    def sample_levels(
        self, n: int, rng: np.random.Generator
    ) -> tuple[Instances, Instances]:
        """See `LevelDistribution`: the same seeds, and so the same levels."""
        marks = self._choose(n, rng)
        return levels_of(marks[SEED], self.groups), marks

    def quantile(self, group: str, share: float) -> float:
        """Return the level below which a share of the instances to train on lies.

        Where there are none, of the new ones. Rounded, for a journal to be read.
        """
        if not self.share:
            return share
        levels = levels_of(self.seeds, self.groups)[group]
        order = np.argsort(levels)
        ends = np.cumsum(np.array(self.weights)[order])
        return round(float(levels[order][np.searchsorted(ends, share * ends[-1])]), 4)

    def _choose(self, n: int, rng: np.random.Generator) -> Instances:
        # As in `sample`: the first m of n instances do not depend on n.
        is_known, which = rng.random((n, 2)).T
        is_known, seeds = is_known < self.share, np.floor(which * NUM_SEEDS)
        if self.seeds:
            ends = np.cumsum(self.weights)
            chosen = np.searchsorted(ends, which * ends[-1], side="right")
            known = np.array(self.seeds, float)[np.minimum(chosen, len(ends) - 1)]
            seeds = np.where(is_known, known, seeds)
        return {SEED: seeds, TRAINS: is_known.astype(float)}


def levels_of(seeds: Sequence[int] | np.ndarray, groups: Sequence[str]) -> Instances:
    """Return the level of every group in the instances of seeds, [n] each."""
    levels = unit_numbers(np.asarray(seeds), len(groups))
    return dict(zip(groups, levels.T, strict=True))


def unit_numbers(seeds: np.ndarray, width: int) -> np.ndarray:
    """Return numbers in [0, 1), [n, width]; a row depends on its seed, and on no other.

    Splitmix64 (Steele et al. 2014), from a scrambled seed.
    """
    steps = np.arange(1, width + 1, dtype=np.uint64) * GOLDEN
    bits = _scramble(_scramble(seeds.astype(np.uint64) + GOLDEN)[:, None] + steps)
    return (bits >> np.uint64(11)) * 2.0**-53


def _scramble(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
