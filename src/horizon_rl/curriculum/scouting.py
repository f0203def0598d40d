"""Scouting: what a policy survives beyond its levels, and how far to leap from there.

Scouts are few scenarios with mean actions on a ladder of levels, all groups together.
They share their random numbers, so that two rungs differ only by level.
All functions are pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from horizon_rl.curriculum.evidence import Evidence
from horizon_rl.support.bounds import Amount, Bounded, Count, CountOrNone, Share, Within
from horizon_rl.support.errors import InputError

Levels = dict[str, float]
BEYOND = "beyond"
WITHIN = "within"
CANDIDATE = "candidate"
TRAINING = "training"
"""Survival of the training episodes, beside that of the scouts."""


@dataclass(frozen=True)
class Recovery:
    """What leaps cost in survival, and what their first phase won back of it.

    With every leap the older ones count half as much: further out it gets harder.
    """

    lost: float
    """Above zero."""
    won_back: float
    """At most what was lost."""

    @classmethod
    def expect(cls, share: float, weight: float = 0.2) -> "Recovery":
        """Return what is assumed before the first leap, which costs about `weight`."""
        return cls(weight, weight * share)

    @property
    def share(self) -> float:
        """The part of its loss that the first phase of a leap won back."""
        return self.won_back / self.lost

    def add(self, lost: float, won_back: float) -> "Recovery":
        """Count one more leap; one that costs nothing shows nothing."""
        if lost <= 0.0:
            return self
        # By chance more than all may come back, or things get worse.
        won_back = min(lost, max(0.0, won_back))
        return Recovery(0.5 * self.lost + lost, 0.5 * self.won_back + won_back)

    def after_phase(
        self, survival: Mapping[str, float], expected: float | None, evidence: Evidence
    ) -> "Recovery":
        """Count a phase, if it was the first of a leap.

        Args:
            survival: What the policy survived before the leap, by scouted set.
            expected: What scouts survived where it leapt to; None: it was no leap.
            evidence: Of the phase.
        """
        before = survived_here(survival)
        if before is None or expected is None:
            return self
        now = survived_here(survival_of(evidence)) or 0.0
        # A phase that was aborted is not probed: it has won back nothing.
        return self.add(before - expected, 0.0 if evidence.aborted else now - expected)

    def after_failure(self) -> "Recovery":
        """Return what is expected after a leap that failed in the end."""
        return Recovery(self.lost, 0.5 * self.won_back)


@dataclass(frozen=True, kw_only=True)
class LeapCfg(Bounded):
    """How the governor scouts, leaps, waits and gives up."""

    recovery: Annotated[float, Within(0.0, 0.99)] = 0.35
    """Share of the survival that a leap costs, as scouts show it, which one phase is
    expected to win back: at first, and at most."""
    measure_recovery: bool = True
    """Leaps that win back less lower it; else it stays."""
    ready: Share = 0.9
    """Episode length in training, as a share of the longest, from which a leap is tried;
    below it the mastered levels are trained on."""
    smoothing: Annotated[float, Within(0.0, 0.99)] = 0.5
    """Weight of what scouts of earlier phases at the same levels showed, in survival and
    error: one draw of a few scenarios may be a lucky one, and lead too far."""
    weigh_error: bool = True
    """Go no further than where gate L's limit of the tracking error is met, by how much
    the scouts' error grows; else by survival alone."""
    min_gain: Share = 0.02
    """Least gain of the mean level that is worth a leap."""
    rungs: Annotated[tuple[Share, ...], Within(1, 100)] = (0.1, 0.25, 0.5, 1.0)
    """Scouted levels, as shares of the way from the candidate to the limit."""
    keep: Annotated[tuple[Share, ...], Within(0, 100)] = (0.75, 0.5, 0.25)
    """Shares of a leap that may be kept where it stalls, the furthest first; none: the
    whole leap or nothing."""
    retry: Share = 0.5
    """After a leap failed, how far the next one may go, as a share of the way to where it
    failed."""
    last_leap: Share = 0.8
    """No leap begins once this share of the run's env steps is spent: the rest makes
    sure of what is mastered, while the noise goes down."""
    patience: Count = 6
    """Phases that one leap may take while it improves."""
    patience_lost: Count = 3
    """Phases that it may take where gate C alone fails."""
    sigmas: Amount = 1.0
    """Gate L is a test: a miss by less than this many standard errors still passes."""
    margin: Amount = 0.25
    """Gate C: allowed growth of the error, and loss of return, of one leap, as shares."""
    by_size: bool = True
    """Gate C bounds the error of every size of body too, also at level 0."""
    anchor_margin: Amount = 1.25
    """Allowed growth of the error at level 0 since the first commit, as a share."""
    idle_phases: CountOrNone = 10
    """Proposals in a row that may gain no level before a run ends that has no limit of
    env steps; and phases that a consolidation may wait for gate L."""

    def __post_init__(self):
        super().__post_init__()
        rising = list(self.rungs) == sorted(set(self.rungs))
        if not rising or self.rungs[0] == 0.0:
            raise InputError(f"rungs are {self.rungs}; accepted: rising, above 0")
        falling = list(self.keep) == sorted(set(self.keep), reverse=True)
        if not falling or {*self.keep} & {0.0, 1.0}:
            raise InputError(f"keep is {self.keep}; accepted: falling, between 0 and 1")

    @property
    def num_scouted(self) -> int:
        """Levels that are scouted at the end of a phase, at most."""
        return len(self.keep) + 1 + len(self.rungs)


def between(
    low: Mapping[str, float], high: Mapping[str, float], share: float
) -> Levels:
    """Return the levels at a share of the way; rounded, for a journal to be read."""
    return {g: round(low[g] + share * (high[g] - low[g]), 4) for g in low}


def ladder(mastered: Levels, candidate: Levels, cfg: LeapCfg) -> dict[str, Levels]:
    """Return the levels to scout at the end of a phase, by name.

    Back toward the mastered levels, in case the phase stalls; and outward, the
    candidate's own levels first: what a rung costs is told from these same scenarios.
    """
    sets = {}
    if mastered != candidate:
        sets |= {f"{WITHIN} {s:g}": between(mastered, candidate, s) for s in cfg.keep}
    limit = dict.fromkeys(candidate, 1.0)
    if candidate != limit:
        rungs = (0.0, *cfg.rungs)
        outward = {rung: between(candidate, limit, rung) for rung in rungs}
        sets |= {f"{BEYOND} {rung:g}": levels for rung, levels in outward.items()}
    return sets


def choose_leap(
    levels: Levels,
    survival: Mapping[str, float],
    goal: float,
    recovery: float,
    cfg: LeapCfg,
    most: float = 1.0,
) -> tuple[Levels, float | None]:
    """Return the furthest levels from which one phase is expected to reach the goal.

    Args:
        levels: Where the policy was trained.
        survival: Mean length of episodes as a share of the longest, by scouted set;
            `candidate` and `training` are at `levels` themselves.
        goal: Survival to be reached at the levels to leap to.
        recovery: Share of the loss that a phase wins back.
        cfg: The rungs that were scouted.
        most: Share of the way to the limit that it may go for other reasons.

    Returns:
        The levels, and what scouts survive there; None where nothing was scouted.
    """
    here = survived_here(survival)
    names = [f"{BEYOND} {rung:g}" for rung in cfg.rungs]
    if here is None or not all(name in survival for name in names):
        return dict(levels), None
    # Few scenarios are all easy or all hard by chance: only those of one draw compare.
    start = survival.get(f"{BEYOND} 0", here)
    loss = losses(start, [survival[name] for name in names])
    allowed = min(max(0.0, here - goal) / (1.0 - recovery), loss[-1])
    share = reach(loss, cfg.rungs, allowed)
    if most < share:
        share, allowed = most, np.interp(most, (0.0, *cfg.rungs), loss)
    return between(levels, dict.fromkeys(levels, 1.0), share), here - float(allowed)


def reach_by_error(errors: Mapping[str, float], most: float, cfg: LeapCfg) -> float:
    """Return the share of the way to the limit at which training's error is `most`.

    It is expected to grow as the scouts' does, and a phase wins nothing back of it:
    policies that are widened follow their commands less closely from leap to leap.
    """
    names = [f"{BEYOND} {rung:g}" for rung in (0.0, *cfg.rungs)]
    if not cfg.weigh_error or not errors.keys() >= {TRAINING, *names}:
        return 1.0
    start, *further = (errors[name] for name in names)
    growth = losses(0.0, [start - error for error in further])
    return reach(growth, cfg.rungs, max(0.0, most - errors[TRAINING]))


def survival_of(evidence: Evidence) -> dict[str, float]:
    """Return what a phase survived, by scouted set, and in training.

    Where the candidate is not probed, its training episodes stand in.
    """
    length = evidence.length or 0.0
    lengths = {f"{CANDIDATE}_length": length, **evidence.probed}
    return {
        name.removesuffix("_length"): value
        for name, value in lengths.items()
        if name.endswith("_length")
    } | {TRAINING: length}


def errors_of(evidence: Evidence) -> dict[str, float]:
    """Return the tracking error of the outward scouts, and in training."""
    scouted = {
        name.removesuffix("_error"): value
        for name, value in evidence.probed.items()
        if name.startswith(BEYOND) and name.endswith("_error")
    }
    error = evidence.tracking_error
    return scouted if error is None else scouted | {TRAINING: error}


def smooth(
    before: Mapping[str, float], now: Mapping[str, float], weight: float
) -> dict[str, float]:
    """Average what outward scouts show with what earlier ones did at the same levels.

    What the policy does where it was trained is known better, and stays as it is.
    """
    return {
        name: weight * before[name] + (1.0 - weight) * value
        if name.startswith(BEYOND) and name in before
        else value
        for name, value in now.items()
    }


def survived_here(survival: Mapping[str, float]) -> float | None:
    """Return what the policy survives where it was trained; None: not probed.

    Noise makes no episode longer: what training survived is a lower bound.
    """
    if CANDIDATE not in survival:
        return None
    return max(survival[CANDIDATE], survival.get(TRAINING, 0.0))


def losses(start: float, survival: Sequence[float]) -> np.ndarray:
    """Return what each rung costs in survival, zero first; never less than a lower one."""
    return np.maximum.accumulate([0.0, *(start - each for each in survival)])


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
