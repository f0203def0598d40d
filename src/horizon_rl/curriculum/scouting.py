"""Scouting: what a policy survives beyond its levels, and how far to leap from there.

Scouts are few scenarios with mean actions on a ladder of levels: every group alone, and
all together. They share their random numbers, so that two rungs differ only by level.
All functions are pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from horizon_rl.support.errors import InputError, require

Levels = dict[str, float]
TOGETHER = "together"
WITHIN = "within"
PARTIAL = (0.75, 0.5, 0.25)
"""Shares of a leap at which a policy that stalled is scouted, the furthest first."""


@dataclass(frozen=True, kw_only=True)
class LeapCfg:
    """How the governor scouts, leaps, waits and gives up."""

    stake: float = 0.1
    """How far below gate L's threshold survival may fall by a leap, as scouts foresee
    it. Halved after a failure, doubled again after a pass."""
    min_stake: float = 0.03
    """It is halved no further than this."""
    min_gain: float = 0.02
    """Least gain of the mean level that is worth a leap."""
    rungs: tuple[float, ...] = (0.1, 0.25, 0.5, 1.0)
    """Scouted levels, as shares of the way from the candidate to the limit."""
    by_group: bool = False
    """Let every group go as far as an equal share of the stake allows; without it, all
    go the same share of their way."""
    patience: int = 6
    """Phases that one leap may take while it improves."""
    patience_lost: int = 3
    """Phases that it may take where gate C alone fails."""
    sigmas: float = 1.0
    """Gate L is a test: a miss by less than so many standard errors is none."""
    margin: float = 0.25
    """Gate C: allowed growth of the error, and loss of return, of one leap, as shares.
    Of every size of body too."""
    anchor_margin: float = 1.0
    """Allowed growth of the error at level 0 since the first commit, as a share."""
    idle_phases: int = 10
    """Proposals in a row that may gain no level before the run ends."""

    def __post_init__(self):
        require("stake", self.stake, self.min_stake, 1.0)
        require("min_stake", self.min_stake, 1e-3)
        require("patience", self.patience, 1, whole=True)
        require("patience_lost", self.patience_lost, 1, whole=True)
        require("idle_phases", self.idle_phases, 0, whole=True)
        for name in ("min_gain", "sigmas", "margin", "anchor_margin"):
            require(name, getattr(self, name), 0.0)
        rising = list(self.rungs) == sorted(set(self.rungs))
        if not rising or not all(0.0 < rung <= 1.0 for rung in self.rungs):
            raise InputError(f"rungs are {self.rungs}; accepted: rising, in 0..1")
        if not self.rungs:
            raise InputError("rungs are none; accepted: at least one")


def between(
    low: Mapping[str, float], high: Mapping[str, float], share: float
) -> Levels:
    """Return the levels at a share of the way; rounded, for a journal to be read."""
    return {g: round(low[g] + share * (high[g] - low[g]), 4) for g in low}


def ladder(mastered: Levels, candidate: Levels, cfg: LeapCfg) -> dict[str, Levels]:
    """Return the levels to scout at the end of a phase, by name.

    Back toward the mastered levels, in case the phase stalls; and outward, all groups
    together and, where leaps go by group, each alone.
    """
    sets = {}
    if mastered != candidate:
        sets |= {f"{WITHIN} {s:g}": between(mastered, candidate, s) for s in PARTIAL}
    open_groups = [g for g, level in candidate.items() if level < 1.0]
    limit = dict.fromkeys(candidate, 1.0)
    for rung in cfg.rungs if open_groups else ():
        further = between(candidate, limit, rung)
        sets[f"{TOGETHER} {rung:g}"] = further
        for group in open_groups if cfg.by_group and len(open_groups) > 1 else ():
            sets[f"{group} {rung:g}"] = {**candidate, group: further[group]}
    return sets


def choose_leap(
    levels: Levels, survival: Mapping[str, float], goal: float, cfg: LeapCfg
) -> Levels:
    """Return the furthest levels at which the scouts foresee survival of the goal.

    Args:
        levels: Where the policy was trained.
        survival: Mean length of episodes as a share of the longest, by scouted set;
            `candidate` is at `levels` itself.
        goal: Least survival at the levels to leap to.
        cfg: The rungs that were scouted.
    """
    here = survival.get("candidate")
    names = [f"{TOGETHER} {rung:g}" for rung in cfg.rungs]
    if here is None or not all(name in survival for name in names):
        return dict(levels)
    limit, allowed = dict.fromkeys(levels, 1.0), max(0.0, here - goal)
    loss = losses(here, [survival[name] for name in names])
    share = reach(loss, cfg.rungs, allowed)
    alone = {
        group: losses(here, [survival[f"{group} {rung:g}"] for rung in cfg.rungs])
        for group in levels
        if all(f"{group} {rung:g}" in survival for rung in cfg.rungs)
    }
    if not alone:
        return between(levels, limit, share)
    # Together, groups cost more or less than the sum of what each costs alone.
    at_share = sum(
        float(np.interp(share, (0.0, *cfg.rungs), c)) for c in alone.values()
    )
    together = float(np.interp(share, (0.0, *cfg.rungs), loss))
    factor = together / at_share if at_share > 0.0 and together > 0.0 else 1.0
    equal = allowed / factor / len(alone)
    return {
        group: round(level + reach(alone[group], cfg.rungs, equal) * (1.0 - level), 4)
        if group in alone
        else level
        for group, level in levels.items()
    }


def losses(here: float, survival: Sequence[float]) -> np.ndarray:
    """Return what each rung costs in survival, zero first; never less than a lower one."""
    return np.maximum.accumulate([0.0, *(here - each for each in survival)])


def reach(loss: np.ndarray, rungs: Sequence[float], allowed: float) -> float:
    """Return the furthest share of the way whose loss is still allowed."""
    shares = (0.0, *rungs)
    over = np.flatnonzero(loss > allowed)
    if len(over) == 0:
        return shares[-1]
    after = int(over[0])
    rise = loss[after] - loss[after - 1]
    part = (allowed - loss[after - 1]) / rise
    return float(shares[after - 1] + part * (shares[after] - shares[after - 1]))


def is_hopeful(
    trail: Sequence[float], target: float, error: float, patience: int
) -> bool:
    """Tell whether a phase that has not passed is worth another of the same.

    Args:
        trail: Episode length at the end of each phase at these levels so far.
        target: The length that passes.
        error: Standard error of the last.
        patience: Phases allowed at these levels.
    """
    left = patience - len(trail)
    if left <= 0:
        return False
    if len(trail) < 2 or trail[-1] >= target:
        return True
    slope = trail[-1] - trail[-2]
    return slope > error and trail[-1] + slope * left >= target
