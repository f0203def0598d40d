"""PLR: the instances that the policy has most to learn from are met again.

Jiang et al., "Prioritized level replay" (ICML 2021) and, without gradient on new levels,
"Replay-guided adversarial environment design" (NeurIPS 2021). Their levels are our
instances.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from statistics import fmean
from typing import Annotated, cast

import numpy as np

from horizon_rl.curriculum.config import CurriculumCfg, Plan
from horizon_rl.curriculum.evidence import Evidence, Outcomes
from horizon_rl.curriculum.frontier import Frontier
from horizon_rl.curriculum.method import (
    WholePhases,
    check_plan,
    conclude_kept,
    judge_phase,
    keep,
    on_trial,
    put_on_trial,
    register_method,
)
from horizon_rl.curriculum.state import Decision, Proposal, State
from horizon_rl.domains.distribution import SCORE, SEED
from horizon_rl.domains.seeds import FromSeeds
from horizon_rl.support.bounds import Bounded, CountOrNone, Share, Within
from horizon_rl.support.errors import InputError
from horizon_rl.support.words import counted

BUFFER = 1000
"""Size of the buffer, at most, unless it is set."""
TYPICAL, BAND = 0.5, (0.1, 0.9)
"""Quantiles that boards show as a group's level, and figures as the band around it."""


@dataclass(frozen=True, kw_only=True)
class PlrCfg(Bounded):
    """How PLR chooses what to meet again."""

    buffer: CountOrNone = 0
    """Instances to remember, at most; 0: 1000, or a phase's episodes if they are fewer."""
    fill: Share = 0.5
    """Share of the buffer that must be filled before any instance is met again."""
    replay: Annotated[float, Within(1e-2, 1.0)] = 0.9
    """Share of the instances that are known ones, which the policy trains on; it is only
    scored on the others, which are new."""
    temperature: Annotated[float, Within(1e-2, 1e6)] = 0.1
    """Of the ranks of scores: the lower, the more often the highest score is met."""
    staleness: Share = 0.5
    """Share of the known instances that are chosen by how long ago they were met."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """An instance of the buffer."""

    seed: int
    score: float
    """Mean positive value loss in the phase that met it last."""
    phase: int
    """Which phase that was."""


@dataclass(frozen=True, kw_only=True)
class PlrProposal(Proposal):
    """A phase of known and new instances; `levels` are medians of those it trains on."""

    seeds: tuple[int, ...]
    """Instances of the buffer; none while it is being filled."""
    weights: tuple[float, ...]
    """How likely each of them is, among all."""
    share: float
    """Share of the instances that are known; nothing is learnt from the others."""

    @property
    def distribution(self) -> FromSeeds:
        return FromSeeds(tuple(self.levels), self.seeds, self.weights, self.share)

    def band_of(self, group: str) -> tuple[float, float]:
        low, high = (self.distribution.quantile(group, share) for share in BAND)
        return low, high


@dataclass(frozen=True, kw_only=True)
class PlrState(State):
    """What PLR remembers beside the frontiers."""

    buffer: tuple[Known, ...] = ()


@register_method("plr")
@dataclass(frozen=True, kw_only=True)
class Plr(WholePhases):
    """Replays instances by the rank of their scores and by their age, in phases.

    Weights are always kept.
    """

    cfg: CurriculumCfg = field(default_factory=CurriculumCfg)
    """The budget. Verdicts are on record only."""
    plr: PlrCfg = field(default_factory=PlrCfg)
    """Buffer, and what is replayed how often."""
    plan: Plan = field(default_factory=Plan)
    """The groups, and how many episodes the run allows."""

    outcome_parameters = (SEED, SCORE)

    @property
    def buffer_size(self) -> int:
        return self.plr.buffer or min(BUFFER, self.plan.episodes or BUFFER)

    @property
    def least_known(self) -> int:
        """Instances that must be known before any is met again."""
        return max(1, ceil(self.plr.fill * self.buffer_size))

    def describe(self) -> str:
        """Say what the settings mean in this run."""
        return (
            f"PLR: {self.buffer_size} instances are remembered; once {self.least_known} "
            f"are known, {self.plr.replay:.0%} of a phase's are met again and trained on"
        )

    def start(self, groups: Sequence[str]) -> State:
        check_plan(self.plan, groups)
        phases = self.plan.phases or self.cfg.max_phases
        exploring = ceil(self.least_known / (self.plan.episodes or self.least_known))
        if phases <= exploring:
            raise InputError(
                "the budget ends before PLR trains: it allows "
                f"{counted(phases, 'phase')}, and the buffer is filled for {exploring}. "
                "Accepted: a larger budget of env steps or phases, smaller --plr.buffer"
            )
        frontiers = tuple(Frontier(name=name, groups=(name,)) for name in groups)
        return self._propose(PlrState(frontiers=frontiers), "nothing is known yet")

    def step(self, state: State, evidence: Evidence) -> tuple[State, Decision]:
        before, proposal = cast(PlrState, state), on_trial(state)
        verdict = judge_phase(state, evidence, self.cfg)
        scores = read_scores(evidence.outcomes)
        buffer = self._update(before.buffer, scores, proposal.phase)
        after = replace(keep(before, evidence), buffer=buffer)
        new = len(scores.keys() - {known.seed for known in before.buffer})
        mean = fmean(scores.values()) if scores else 0.0
        news = (
            f"{counted(len(scores), 'instance')} scored {mean:.3g}, {new} of them new; "
            f"{len(buffer)} of {self.buffer_size} remembered"
        )
        return self._propose(after, news), conclude_kept(proposal, verdict, news)

    def _update(
        self, buffer: Sequence[Known], scores: Mapping[int, float], phase: int
    ) -> tuple[Known, ...]:
        """Take over new scores; of too many instances, keep the likeliest."""
        found = {known.seed: known for known in buffer}
        for seed, score in scores.items():
            found[seed] = Known(seed=seed, score=score, phase=phase)
        known = tuple(found.values())
        weights = self._weights(known, phase)
        # Weights may be too small to differ; ranks do.
        order = np.lexsort((-np.array([each.score for each in known]), -weights))
        return tuple(known[k] for k in sorted(order[: self.buffer_size]))

    def _weights(self, buffer: Sequence[Known], phase: int) -> np.ndarray:
        """Return how likely each instance is, after a phase."""
        return replay_weights(
            np.array([known.score for known in buffer]),
            phase - np.array([known.phase for known in buffer]),
            self.plr.temperature,
            self.plr.staleness,
        )

    def _propose(self, state: PlrState, reason: str) -> PlrState:
        buffer, groups = state.buffer, tuple(state.mastered)
        distribution = FromSeeds(groups)
        if len(buffer) >= self.least_known:
            weights = self._weights(buffer, state.phase - 1).round(9).tolist()
            seeds = tuple(known.seed for known in buffer)
            distribution = FromSeeds(groups, seeds, tuple(weights), self.plr.replay)
        return put_on_trial(
            state,
            self.cfg,
            {group: distribution.quantile(group, TYPICAL) for group in groups},
            reason,
            PlrProposal,
            seeds=distribution.seeds,
            weights=distribution.weights,
            share=distribution.share,
        )


def replay_weights(
    scores: np.ndarray, staleness: np.ndarray, temperature: float, mix: float
) -> np.ndarray:
    """Return how likely each known instance is to be met again; they add up to 1.

    Args:
        scores: [n] of the instances.
        staleness: [n] phases since each was met; if all are 0, all are as stale.
        temperature: By ranks, an instance weighs (1 / rank) ^ (1 / temperature); the
            highest score has rank 1.
        mix: Share of the staleness in the whole, in 0..1.
    """
    ranks = np.empty(len(scores))
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    by_score = ranks ** (-1.0 / temperature)
    by_age = staleness.astype(float) if staleness.any() else np.ones(len(scores))
    return (1.0 - mix) * by_score / by_score.sum() + mix * by_age / by_age.sum()


def read_scores(outcomes: Outcomes | None) -> dict[int, float]:
    """Return the mean score of every instance that episodes took place in, by seed."""
    if not outcomes:
        return {}
    values = np.array(outcomes.values)
    if values.shape != (len(outcomes), 2):
        raise InputError("plr needs to know seed and score of every episode")
    if (values.round(6) < 0.0).any() or (values[:, 0] % 1.0).any():
        raise InputError(
            "outcomes have impossible seeds or scores; accepted: whole numbers from 0 on "
            "as seeds, and scores from 0 on"
        )
    seeds, where = np.unique(values[:, 0].astype(int), return_inverse=True)
    means = np.bincount(where, values[:, 1]) / np.bincount(where)
    return dict(zip(seeds.tolist(), means.round(6).tolist(), strict=True))
