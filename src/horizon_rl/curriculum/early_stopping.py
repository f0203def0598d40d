"""Looks at a running phase: may it be committed early, must it be aborted?

Both go beyond the paper and are off unless asked for (`EarlyCfg.looks` is empty). A
phase that is looked at often passes more easily by luck. So looks come at fixed times,
and each may spend only its share of one total error: an early pass must be certain, not
merely likely.
"""

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Annotated, Literal

import numpy as np

from horizon_rl.curriculum.config import GateCfg
from horizon_rl.curriculum.evidence import Episodes
from horizon_rl.support.bounds import Bounded, Share, Within
from horizon_rl.support.errors import InputError

Look = Literal["go on", "judge", "abort"]
"""What a look at a running phase says: train on, measure and judge it now, or give up."""


@dataclass(frozen=True, kw_only=True)
class EarlyCfg(Bounded):
    """When to look into a running phase, and what it takes to end it there."""

    looks: Annotated[tuple[Share, ...], Within(0, 1000)] = ()
    """Shares of the phase at which to look, rising, below 1; empty: never."""
    error: Annotated[float, Within(1e-12, 0.499)] = 0.05
    """Total probability, over all looks, of an early pass that gate L would fail."""
    collapse: Annotated[float, Within(0.0, 2.0)] = 0.25
    """Abort if the mean episode length is below this share of the longest; above 1, at
    the first look."""
    min_episodes: Annotated[int, Within(2, 1_000_000)] = 100
    """Episodes a look needs to say anything at all."""

    def __post_init__(self):
        super().__post_init__()
        inside = all(0.0 < share < 1.0 for share in self.looks)
        if not inside or list(self.looks) != sorted(set(self.looks)):
            raise InputError(
                f"looks are {self.looks}; accepted: rising, between 0 and 1"
            )


def spent_error(share: float, error: float) -> float:
    """Return the error that may be spent up to `share` of a phase.

    O'Brien and Fleming's shape, as Lan and DeMets (1983) write it: next to nothing
    early on, all of `error` at the end.
    """
    normal = NormalDist()
    return 2.0 * (1.0 - normal.cdf(normal.inv_cdf(1.0 - error / 2.0) / sqrt(share)))


def look_early(
    window: Episodes, index: int, *, max_length: int, gates: GateCfg, cfg: EarlyCfg
) -> Look:
    """Judge gate L at the look `cfg.looks[index]` from the episodes so far.

    "judge" means that gate L is decided; gate C is still to be measured, and the
    phase goes on if it fails. The shares of the error add up over the looks (a union
    bound), which needs no assumption on how the looks depend on each other.
    """
    if len(window) < cfg.min_episodes:
        return "go on"
    length = window.length / max_length
    if float(np.mean(length)) < cfg.collapse:
        return "abort"
    before = spent_error(cfg.looks[index - 1], cfg.error) if index > 0 else 0.0
    share = spent_error(cfg.looks[index], cfg.error) - before
    sigmas = NormalDist().inv_cdf(1.0 - share) if share > 0.0 else np.inf
    long_enough = _mean_beyond(length, gates.min_length, sigmas)
    precise_enough = _mean_beyond(-window.tracking_error, -gates.max_error, sigmas)
    return "judge" if long_enough and precise_enough else "go on"


def _mean_beyond(values: np.ndarray, threshold: float, sigmas: float) -> bool:
    """Is the mean above the threshold by `sigmas` standard errors?"""
    standard_error = float(np.std(values, ddof=1)) / sqrt(len(values))
    return float(np.mean(values)) - threshold > sigmas * standard_error
