"""Scouting: what a policy survives beyond its levels, and how far to leap from there.

Scouts are few scenarios with mean actions on a ladder of levels, all groups together.
They share their random numbers, so that two rungs differ only by level.
All functions are pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from horizon_rl.support.errors import InputError, require

Levels = dict[str, float]
BEYOND = "beyond"
WITHIN = "within"
PARTIAL = (0.75, 0.5, 0.25)
"""Shares of a leap at which a policy that stalled is scouted, the furthest first."""


@dataclass(frozen=True, kw_only=True)
class LeapCfg:
    """How the governor scouts, leaps, waits and gives up."""

    stake: float = 0.05
    """How far below `ready`, or gate L's threshold, survival may fall by a leap, as scouts
    show it. Halved after a failure, doubled again after a leap that passes."""
    ready: float = 0.9
    """Episode length in training, as a share of the longest, from which a leap is tried;
    below it the mastered levels are trained on."""
    min_gain: float = 0.02
    """Least gain of the mean level that is worth a leap."""
    rungs: tuple[float, ...] = (0.1, 0.25, 0.5, 1.0)
    """Scouted levels, as shares of the way from the candidate to the limit."""
    last_leap: float = 0.7
    """No leap begins once this share of the run's env steps is spent: the rest makes
    sure of what is mastered, while the noise goes down."""
    patience: int = 6
    """Phases that one leap may take while it improves."""
    patience_lost: int = 3
    """Phases that it may take where gate C alone fails."""
    sigmas: float = 1.0
    """Gate L is a test: a miss by less than so many standard errors is none."""
    margin: float = 0.25
    """Gate C: allowed growth of the error, and loss of return, of one leap, as shares.
    Of every size of body too."""
    anchor_margin: float = 1.25
    """Allowed growth of the error at level 0 since the first commit, as a share."""
    idle_phases: int = 10
    """Proposals in a row that may gain no level before no other leap is tried. Then a run
    ends; one with a limit of env steps makes sure of what is mastered up to there."""

    def __post_init__(self):
        require("stake", self.stake, 0.0, 1.0)
        require("last_leap", self.last_leap, 0.0, 1.0)
        require("ready", self.ready, 0.0, 1.0)
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

    @property
    def num_scouted(self) -> int:
        """Levels that are scouted at the end of a phase, at most."""
        return len(PARTIAL) + len(self.rungs)


def between(
    low: Mapping[str, float], high: Mapping[str, float], share: float
) -> Levels:
    """Return the levels at a share of the way; rounded, for a journal to be read."""
    return {g: round(low[g] + share * (high[g] - low[g]), 4) for g in low}


def ladder(mastered: Levels, candidate: Levels, cfg: LeapCfg) -> dict[str, Levels]:
    """Return the levels to scout at the end of a phase, by name.

    Back toward the mastered levels, in case the phase stalls; and outward.
    """
    sets = {}
    if mastered != candidate:
        sets |= {f"{WITHIN} {s:g}": between(mastered, candidate, s) for s in PARTIAL}
    limit = dict.fromkeys(candidate, 1.0)
    if candidate != limit:
        outward = {rung: between(candidate, limit, rung) for rung in cfg.rungs}
        sets |= {f"{BEYOND} {rung:g}": levels for rung, levels in outward.items()}
    return sets


def choose_leap(
    levels: Levels, survival: Mapping[str, float], goal: float, cfg: LeapCfg
) -> Levels:
    """Return the furthest levels at which the scouts still survive the goal.

    Args:
        levels: Where the policy was trained.
        survival: Mean length of episodes as a share of the longest, by scouted set;
            `candidate` is at `levels` itself.
        goal: Least survival at the levels to leap to.
        cfg: The rungs that were scouted.
    """
    here = survival.get("candidate")
    names = [f"{BEYOND} {rung:g}" for rung in cfg.rungs]
    if here is None or not all(name in survival for name in names):
        return dict(levels)
    loss = losses(here, [survival[name] for name in names])
    share = reach(loss, cfg.rungs, max(0.0, here - goal))
    return between(levels, dict.fromkeys(levels, 1.0), share)


def losses(here: float, survival: Sequence[float]) -> np.ndarray:
    """Return what each rung costs in survival, zero first; never less than a lower one."""
    return np.maximum.accumulate([0.0, *(here - each for each in survival)])


def reach(loss: np.ndarray, rungs: Sequence[float], allowed: float) -> float:
    """Return the furthest share of the way whose loss is still allowed."""
    # Of equal losses it takes the last: the furthest.
    return float(np.interp(allowed, loss, (0.0, *rungs)))


def is_hopeful(trail: Sequence[float], error: float, patience: int) -> bool:
    """Tell whether a phase that has not passed is worth another of the same.

    Args:
        trail: How nearly gate L passed at the end of each phase at these levels so far;
            1 passes.
        error: Standard error of the last.
        patience: Phases allowed at these levels.
    """
    left = patience - len(trail)
    if left <= 0:
        return False
    if len(trail) < 2 or trail[-1] >= 1.0:
        return True
    slope = trail[-1] - trail[-2]
    return slope > error and trail[-1] + slope * left >= 1.0
