"""A synthetic learner: the least that shows why a curriculum must be recoverable.

It has a hidden skill per domain group, the level up to which it can cope. Training
just beyond the skill makes it grow, at some cost to precision; training too far beyond
yields no corrective experience and damages all that was there, for good. Wide levels in
one group leave less room in the others, and every measurement is noisy. There is no
physics in it: it rehearses the curriculum's logic, not a robot.
"""

from dataclasses import dataclass, replace
from math import inf, tanh
from statistics import fmean
from typing import Annotated

import numpy as np

from horizon_rl.domains import Levels
from horizon_rl.support.bounds import Bounded, EnvSteps, Share, Within
from horizon_rl.support.errors import InputError

FALLEN = 0.2
"""Length of an episode that ends in a fall, as a share of the longest."""


@dataclass(frozen=True, kw_only=True)
class SyntheticCfg(Bounded):
    """How the synthetic learner learns and breaks."""

    reach: Annotated[float, Within(1e-9, 10.0)] = 0.15
    """How far beyond its skill it can train and still learn: half of the rollouts
    are recoverable there."""
    survival: Annotated[float, Within(1e-9, 10.0)] = 0.5
    """How far beyond its skill every second episode still lasts, as a share of the
    reach; above 1, it survives where training damages it, and scouts cannot tell."""
    rate: Share = 0.7
    """Share of the way to a trained level that one recoverable phase covers."""
    transfer: Share = 0.15
    """Share of a gain in one group that the other groups gain too."""
    coupling: Share = 0.1
    """Skill lost in a group per mean level of the others."""
    fragility: Share = 0.8
    """Share of its health that a phase without recoverable rollouts destroys."""
    forgetting: Share = 0.02
    """Tracking error that a phase at the edge of the reach adds everywhere, m/s."""
    healing: Share = 0.1
    """Share of lost health and precision that a recoverable phase brings back."""
    ceiling_low: Annotated[float, Within(0.0, 10.0)] = 0.3
    """Hidden ceilings of skill are drawn between this level ..."""
    ceiling_high: Annotated[float, Within(0.0, 10.0)] = 1.1
    """... and this one; above 1 the limit can be mastered."""
    noise: Share = 0.01
    """Standard deviation of the measurements, relative to full scale."""
    phase_env_steps: EnvSteps = 9_830_400
    """Environment steps to book per phase: 100 iterations of 4096 x 24."""
    probe_env_steps: Annotated[int, Within(1, 10**12)] = 64_000
    """Environment steps to book per probe set, scouts too, if no episode ends early: 128
    of 500."""

    def __post_init__(self):
        super().__post_init__()
        if self.ceiling_low > self.ceiling_high:
            raise InputError("ceiling_low is above ceiling_high")


@dataclass(frozen=True)
class SyntheticPolicy:
    """What the learner has learnt: all that a checkpoint holds."""

    skill: dict[str, float]
    """Level each group can be coped with, in good health."""
    ceiling: dict[str, float]
    """Highest skill each group can ever have; hidden from the curriculum."""
    health: float = 1.0
    """Falls when training collapses; all skill is multiplied by it."""
    imprecision: float = 0.0
    """Tracking error that was forgotten how to avoid, m/s."""


def novice(groups: tuple[str, ...], cfg: SyntheticCfg, seed: int) -> SyntheticPolicy:
    """Return an untrained policy that cannot do the baseline yet."""
    rng = np.random.default_rng([seed, len(groups)])
    draws = rng.uniform(cfg.ceiling_low, cfg.ceiling_high, len(groups))
    return SyntheticPolicy(
        skill=dict.fromkeys(groups, -0.8 * cfg.reach),
        ceiling={group: float(c) for group, c in zip(groups, draws, strict=True)},
    )


def overreach(policy: SyntheticPolicy, levels: Levels, cfg: SyntheticCfg) -> float:
    """Return how far `levels` lie beyond the skill, in the worst group."""
    worst = -inf
    for group, skill in policy.skill.items():
        others = [level for name, level in levels.items() if name != group]
        room = skill - cfg.coupling * (fmean(others) if others else 0.0)
        worst = max(worst, levels[group] - policy.health * room)
    return worst


def fall_rate(policy: SyntheticPolicy, levels: Levels, cfg: SyntheticCfg) -> float:
    """Return the share of episodes that end in a fall at `levels`."""
    beyond = overreach(policy, levels, cfg) / cfg.reach
    return _rise(beyond, center=cfg.survival, width=0.12)


def success_rate(policy: SyntheticPolicy, levels: Levels, cfg: SyntheticCfg) -> float:
    """Return the share of episodes without a fall and with an error below 0.4."""
    _, error, _ = perform(policy, levels, cfg)
    precise = 1.0 - _rise(error, center=0.4, width=0.02)
    return (1.0 - fall_rate(policy, levels, cfg)) * precise


def train(
    policy: SyntheticPolicy, levels: Levels, cfg: SyntheticCfg
) -> SyntheticPolicy:
    """Train one phase at `levels`."""
    beyond = overreach(policy, levels, cfg) / cfg.reach
    recoverable = 1.0 - _rise(beyond, center=1.0, width=0.12)
    gain = {}
    for group, skill in policy.skill.items():
        # Training at a level teaches a little beyond it, up to the ceiling.
        target = min(levels[group] + 0.5 * cfg.reach, policy.ceiling[group])
        gain[group] = cfg.rate * recoverable * max(0.0, target - skill)
    shared = cfg.transfer * fmean(gain.values())
    skill = {
        group: max(before, min(before + gain[group] + shared, policy.ceiling[group]))
        for group, before in policy.skill.items()
    }
    health = policy.health * (1.0 - cfg.fragility * (1.0 - recoverable))
    healed = cfg.healing * recoverable
    return replace(
        policy,
        skill=skill,
        health=health + healed * (1.0 - health),
        imprecision=policy.imprecision * (1.0 - healed)
        + cfg.forgetting * min(max(beyond, 0.0), 1.0),
    )


def perform(
    policy: SyntheticPolicy, levels: Levels, cfg: SyntheticCfg
) -> tuple[float, float, float]:
    """Return (episode length as a share, tracking error, return) at `levels`."""
    falls = fall_rate(policy, levels, cfg)
    error = 0.15 + 0.1 * fmean(levels.values()) + 0.5 * falls + policy.imprecision
    length = 1.0 - (1.0 - FALLEN) * falls
    return length, error, 25.0 * length - 10.0 * error


def _rise(x: float, *, center: float, width: float) -> float:
    """Rise smoothly from 0 to 1 around `center`."""
    return 0.5 * (1.0 + tanh((x - center) / (2.0 * width)))
