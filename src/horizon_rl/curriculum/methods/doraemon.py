"""DORAEMON: the widest distribution over levels under which enough episodes succeed.

Tiboni et al., "Domain randomization via entropy maximization" (ICLR 2024). The update
is in `entropy`, which needs scipy; this file and the room import without it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import log
from statistics import fmean
from typing import Annotated, Literal, cast

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
from horizon_rl.domains.beta import BetaLevels, quantile
from horizon_rl.support.bounds import Bounded, Share, Within
from horizon_rl.support.errors import InputError, needs_extra
from horizon_rl.support.words import counted

Shapes = dict[str, tuple[float, float]]
TYPICAL, BAND = 0.5, (0.1, 0.9)
"""Quantiles that boards show as a group's level, and figures as the band around it."""
MAX_STEP = 0.5
"""Largest step that is derived: beyond it, weights of episodes say little."""
UPDATES = 40
"""Updates that a step follows from in a run without a budget of env steps, which would
tell how many there are."""


@dataclass(frozen=True, kw_only=True)
class DoraemonCfg(Bounded):
    """How DORAEMON widens its distribution."""

    unit: Literal["group", "parameter"] = "group"
    """What has a level and a Beta distribution of its own."""
    min_success: Share = 0.5
    """Least share of episodes that must succeed: gate L's length and error, of each."""
    step: Annotated[float, Within(0.0, 1e6)] = 0.0
    """Largest KL divergence of a distribution from the one after it, in nats; 0: such
    that it can be uniform by the share `arrive_by` of the run's phases, or of 41 phases
    in a run without a budget of env steps."""
    arrive_by: Annotated[float, Within(1e-2, 1.0)] = 0.6
    """Share of the phases in which it becomes uniform, if nothing holds it back."""
    start: Annotated[float, Within(2.0, 190.0)] = 100.0
    """It starts as Beta(1, start) over levels: densest at the baseline, with a mean of
    about 1 / start."""


@dataclass(frozen=True, kw_only=True)
class BetaProposal(Proposal):
    """A phase whose instances draw their own levels; `levels` are the medians."""

    shapes: Shapes
    """Beta distribution of every level, by group or parameter."""
    nats: float
    """Entropy, mean over the levels; 0 is the uniform distribution, the widest."""

    @property
    def distribution(self) -> BetaLevels:
        return BetaLevels(self.shapes)

    def band_of(self, group: str) -> tuple[float, float]:
        low, high = (level_of(self.shapes, group, share) for share in BAND)
        return low, high


@dataclass(frozen=True, kw_only=True)
class DoraemonState(State):
    """What DORAEMON remembers beside the frontiers."""

    shapes: Shapes
    """The present distribution."""
    succeeded: bool = False
    """Enough episodes have once succeeded: before, the distribution stays."""


@register_method("doraemon")
@dataclass(frozen=True, kw_only=True)
class Doraemon(WholePhases):
    """Maximises the entropy of Beta distributions over levels, under success.

    Weights are always kept.
    """

    cfg: CurriculumCfg = field(default_factory=CurriculumCfg)
    """Gate L, by which an episode succeeds; and the budget. Verdicts are on record only."""
    doraemon: DoraemonCfg = field(default_factory=DoraemonCfg)
    """Threshold, step, and where it starts."""
    plan: Plan = field(default_factory=Plan)
    """The groups and their parameters, and how many updates the run allows."""

    tolerance = 1e-3
    """How far numbers of a journal may be from what is derived again: with another scipy
    the solver may stop elsewhere."""

    @property
    def outcome_parameters(self) -> tuple[str, ...]:
        return self.plan.catalogue.names

    @property
    def units(self) -> tuple[str, ...]:
        """Name everything that has a distribution of its own."""
        if self.doraemon.unit == "group":
            return self.plan.catalogue.names
        return tuple(chain.from_iterable(self.plan.groups.values()))

    @property
    def updates(self) -> int:
        """How often the distribution can change while the run still trains on it."""
        return (self.plan.phases or min(UPDATES + 1, self.cfg.max_phases)) - 1

    @property
    def max_step(self) -> float:
        """Largest KL divergence of a distribution from the one after it, in nats.

        From Beta(1, b) to Beta(1, r b) it is r - 1 - ln r for every level, so that equal
        ratios are equal steps. The widest step goes a little faster than this.
        """
        if self.doraemon.step:
            return self.doraemon.step
        updates = max(1.0, self.doraemon.arrive_by * self.updates)
        ratio = self.doraemon.start ** (-1.0 / updates)
        return min(len(self.units) * (ratio - 1.0 - log(ratio)), MAX_STEP)

    def describe(self) -> str:
        """Say what follows from the run's budget."""
        allowed = f"the budget allows {counted(self.updates, 'update')}"
        if not self.plan.phases and self.updates == UPDATES:
            allowed = f"no budget of env steps, so the default: for {UPDATES} updates"
        return (
            f"DORAEMON: {counted(len(self.units), 'Beta distribution')}, steps of at most "
            f"{self.max_step:.3g} nats ({allowed})"
        )

    def start(self, groups: Sequence[str]) -> State:
        check_plan(self.plan, groups)
        if self.updates < 1:
            raise InputError(
                "the budget ends before one update of DORAEMON: it allows 1 phase. "
                "Accepted: a larger budget of env steps or phases"
            )
        state = DoraemonState(
            frontiers=tuple(Frontier(name=name, groups=(name,)) for name in groups),
            shapes=dict.fromkeys(self.units, (1.0, self.doraemon.start)),
        )
        return self._propose(state, "next to the baseline")

    def step(self, state: State, evidence: Evidence) -> tuple[State, Decision]:
        before, proposal = cast(DoraemonState, state), on_trial(state)
        verdict = judge_phase(state, evidence, self.cfg)
        levels, success = self._read(evidence.outcomes)
        seen = float(np.mean(success)) if len(success) else 0.0
        succeeded = before.succeeded or seen >= self.doraemon.min_success
        shapes, words = before.shapes, "not enough yet, the start stays"
        if succeeded:
            shapes, words = self._update(before.shapes, levels, success)
        after = replace(keep(before, evidence), shapes=shapes, succeeded=succeeded)
        episodes = counted(len(success), "episode")
        news = f"{seen:.1%} of {episodes} succeeded: {words}"
        return self._propose(after, news), conclude_kept(proposal, verdict, news)

    def _read(self, outcomes: Outcomes | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the levels [n, d] and the success [n] of a phase's episodes."""
        if not outcomes:
            return np.zeros((0, len(self.units))), np.zeros(0)
        levels = np.array(outcomes.values)
        if levels.shape != (len(outcomes), len(self.units)):
            raise InputError(
                f"outcomes have values of shape {levels.shape}; accepted: a level for "
                f"each of {', '.join(self.units)} in every episode"
            )
        near = levels.round(6)
        if wrong := levels[(near < 0.0) | (near > 1.0)].tolist():
            raise InputError(f"outcomes have a level of {wrong[0]:g}; accepted: 0..1")
        gates = self.cfg.gates
        lasted = np.array(outcomes.length) >= gates.min_length
        tracked = np.array(outcomes.tracking_error) <= gates.max_error
        return levels, (lasted & tracked).astype(float)

    def _update(
        self, shapes: Shapes, levels: np.ndarray, success: np.ndarray
    ) -> tuple[Shapes, str]:
        """Return the distribution that follows from episodes, and why, in words."""
        if not len(levels):
            return shapes, "nothing to go by, the distribution stays"
        with needs_extra("doraemon"):
            from horizon_rl.curriculum.entropy import update
        found = update(
            np.array([*shapes.values()]).T,
            levels,
            success,
            min_success=self.doraemon.min_success,
            max_step=self.max_step,
        )
        if found.success < self.doraemon.min_success and not success.any():
            return shapes, "no success, so no direction to move in"
        if found.outcome == "kept":
            return shapes, "nothing better within a step, the distribution stays"
        words = (
            f"{found.outcome} by {found.step:.3g} nats, {found.success:.1%} estimated"
        )
        pairs = [(a, b) for a, b in found.shapes.T.tolist()]
        return dict(zip(shapes, pairs, strict=True)), words

    def _propose(self, state: DoraemonState, reason: str) -> State:
        with needs_extra("doraemon"):
            from horizon_rl.curriculum.entropy import entropy
        shapes = state.shapes
        return put_on_trial(
            state,
            self.cfg,
            {g: level_of(shapes, g, TYPICAL) for g in state.mastered},
            reason,
            BetaProposal,
            shapes=shapes,
            nats=round(entropy(np.array([*shapes.values()]).T) / len(shapes), 4),
        )


def level_of(shapes: Shapes, group: str, share: float) -> float:
    """Return the level below which a share of a group's instances lies.

    Of parameters with levels of their own, the mean; rounded, for a journal to be read.
    """
    own = [shape for unit, shape in shapes.items() if unit.split(".")[0] == group]
    return round(fmean(float(quantile(s, share)) for s in own), 4) if own else 0.0
