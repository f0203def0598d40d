"""ADR: every bound of the ranges moves by how episodes at that very bound go."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import chain
from math import ceil, log
from statistics import fmean
from typing import Annotated, Literal, cast

import numpy as np

from horizon_rl.curriculum.config import CurriculumCfg, GateCfg, Plan
from horizon_rl.curriculum.evidence import Evidence, Outcomes
from horizon_rl.curriculum.frontier import LIMIT, Frontier
from horizon_rl.curriculum.method import (
    WholePhases,
    arrivals,
    check_plan,
    conclude_kept,
    judge_phase,
    keep,
    on_trial,
    put_on_trial,
    register_method,
)
from horizon_rl.curriculum.state import Decision, Proposal, State
from horizon_rl.domains.bounds import HIGH, LOW, AtBounds, bounds_by_group
from horizon_rl.domains.distribution import BOUND
from horizon_rl.support.bounds import Bounded, CountOrNone, Share, Within
from horizon_rl.support.errors import InputError
from horizon_rl.support.words import counted

EPISODES = {"group": 128, "parameter": 20}
"""Episodes of a buffer: where every end has a bound of its own, there are many bounds."""
STEP = 0.05
"""Step of a run without a budget of env steps, from which it could follow."""
WIDENING = 0.6
"""Share of the updates in which a bound that always widens arrives at the limit."""
LEAST = 0.01
"""Width below which no range counts, as a share of the limit's: a point has no entropy."""


@dataclass(frozen=True, kw_only=True)
class AdrCfg(Bounded):
    """How ADR's bounds are tested and moved."""

    unit: Literal["group", "parameter"] = "group"
    """What has a bound: every group, its level; or every parameter, one at either end
    that can move."""
    boundary: Annotated[float, Within(0.01, 1.0)] = 0.4
    """Share of the instances that lie at a bound."""
    episodes: CountOrNone = 0
    """Episodes at a bound until it may move; 0: 128 of a group, 20 of a parameter."""
    step: Share = 0.0
    """How far a bound moves, as a level; 0: so far that one that always widens is at the
    limit after 60 % of the updates that the budget of env steps allows."""
    narrow: Share = 0.5
    """A bound narrows at this share of gate L's episode length, or less; it widens where
    gate L passes."""


@dataclass(frozen=True, kw_only=True)
class Buffer:
    """Episodes at one bound since it last moved or was tested."""

    episodes: int = 0
    length: float = 0.0
    """Sum of their lengths, as shares of the longest."""
    error: float = 0.0
    """Sum of their tracking errors, m/s."""

    def move(self, gates: GateCfg, narrow: float) -> int:
        """Return which way the bound goes: 1 outward, -1 inward, 0 neither."""
        # Rounded: a mean of thresholds is the threshold.
        length = round(self.length / self.episodes, 9)
        error = round(self.error / self.episodes, 9)
        if length >= gates.min_length and error <= gates.max_error:
            return 1
        return -1 if length <= narrow * gates.min_length else 0


@dataclass(frozen=True, kw_only=True)
class AdrState(State):
    """What ADR remembers: a buffer per bound."""

    buffers: dict[str, Buffer]


@dataclass(frozen=True, kw_only=True)
class AdrProposal(Proposal):
    """Ranges with bounds of their own; a group's level is the mean of its bounds."""

    bounds: dict[str, float]
    """Level of every bound, see `AtBounds`."""
    boundary: float
    """Share of the instances at a bound."""
    nats: float
    """Nats per dimension, see `nats_per_dimension`."""

    @property
    def distribution(self) -> AtBounds:
        return AtBounds(self.bounds, self.boundary)


@register_method("adr")
@dataclass(frozen=True, kw_only=True)
class Adr(WholePhases):
    """Automatic domain randomisation (OpenAI 2019, algorithm 1), in phases.

    Some instances lie at a bound. Their fair episodes fill that bound's buffer, phase
    by phase. Once it holds enough, its mean decides: the bound widens, narrows or
    stays, and the buffer is cleared in any case. Weights are always kept.
    """

    cfg: CurriculumCfg = field(default_factory=CurriculumCfg)
    """Gate L, which is the score; and the budget. Verdicts are on record only."""
    adr: AdrCfg = field(default_factory=AdrCfg)
    """How bounds are tested and moved."""
    plan: Plan = field(default_factory=Plan)
    """The groups and their parameters, and how many updates the run allows."""

    outcome_parameters = (BOUND,)

    @property
    def bounds(self) -> tuple[str, ...]:
        """Name everything that moves on its own."""
        if self.adr.unit == "group":
            return self.plan.catalogue.names
        parameters = self.plan.catalogue.parameters
        return tuple(
            f"{name}.{end}"
            for name in chain.from_iterable(self.plan.groups.values())
            for end in (LOW, HIGH)
            # Of what never falls below 0, say, one end stands still.
            if getattr(parameters[name].limit, end)
            != getattr(parameters[name].baseline, end)
        )

    @property
    def buffer_size(self) -> int:
        return self.adr.episodes or EPISODES[self.adr.unit]

    @property
    def phases_to_fill(self) -> int:
        """Phases until a buffer is full, if all episodes last; 0: it is not known."""
        a_phase = self.adr.boundary * self.plan.episodes / max(1, len(self.bounds))
        return ceil(self.buffer_size / a_phase) if a_phase else 0

    @property
    def updates(self) -> int | None:
        """How often the budget allows each bound to move; None: it has no limit."""
        if not self.plan.phases or not self.phases_to_fill:
            return None
        return self.plan.phases // self.phases_to_fill

    @property
    def step_size(self) -> float:
        if self.adr.step or self.updates is None:
            return self.adr.step or STEP
        return min(1.0, round(1.0 / (WIDENING * max(1, self.updates)), 4))

    def describe(self) -> str:
        """Say what follows from the run's budget."""
        allowed = "no budget of env steps, so the default"
        if (n := self.updates) is not None:
            allowed = f"the budget allows {counted(n, 'update')} of each"
        return (
            f"ADR: {counted(len(self.bounds), 'bound')}, "
            f"{counted(self.buffer_size, 'episode')} a buffer, step {self.step_size:g} "
            f"({allowed})"
        )

    def start(self, groups: Sequence[str]) -> State:
        check_plan(self.plan, groups)
        phases = self.plan.phases or self.cfg.max_phases
        if phases < self.phases_to_fill:
            raise InputError(
                f"the budget ends before one buffer of ADR is full: about "
                f"{counted(phases, 'phase')} of "
                f"{counted(self.plan.episodes, 'episode')}, {self.adr.boundary:.0%} of "
                f"them at {counted(len(self.bounds), 'bound')}, and "
                f"{self.buffer_size} needed at each. Accepted: a larger budget of "
                "env steps or phases, fewer --groups, smaller --adr.episodes"
            )
        state = AdrState(
            frontiers=tuple(Frontier(name=name, groups=(name,)) for name in groups),
            buffers=dict.fromkeys(self.bounds, Buffer()),
        )
        return self._propose(state, dict.fromkeys(self.bounds, 0.0), "the baseline")

    def step(self, state: State, evidence: Evidence) -> tuple[State, Decision]:
        before = cast(AdrState, state)
        proposal = cast(AdrProposal, on_trial(state))
        verdict = judge_phase(state, evidence, self.cfg)
        buffers = self._fill(before.buffers, evidence.outcomes)
        full = [b for b in buffers if buffers[b].episodes >= self.buffer_size]
        bounds, step = dict(proposal.bounds), self.step_size
        for bound in full:
            way = buffers[bound].move(self.cfg.gates, self.adr.narrow)
            level = min(LIMIT, max(0.0, bounds[bound] + way * step))
            bounds[bound] = round(level, 6)
        cleared = {**buffers, **dict.fromkeys(full, Buffer())}
        after = replace(keep(before, evidence), buffers=cleared)
        news = _explain(full, proposal.bounds, bounds)
        told = f"{proposal.nats:.3g} nats per dimension; {news}"
        decision = conclude_kept(proposal, verdict, told, arrivals(before, after))
        return self._propose(after, bounds, news), decision

    def _fill(
        self, buffers: Mapping[str, Buffer], outcomes: Outcomes | None
    ) -> dict[str, Buffer]:
        """Add a phase's episodes to the buffers of the bounds that they took place at.

        All of them at once: of those that began together, the first to end are the
        falls. A buffer may so hold more than it needs.
        """
        if not outcomes:
            return dict(buffers)
        marks = np.fromiter(chain.from_iterable(outcomes.values), float)
        if len(marks) != len(outcomes):
            raise InputError("adr needs to know the bound of every episode")
        at = marks.astype(int)
        if (at != marks).any() or at.min() < 0 or at.max() > len(buffers):
            raise InputError(
                f"outcomes have bounds that there are not; accepted: 1..{len(buffers)}, "
                f"for {', '.join(buffers)}, and 0 for none"
            )
        totals = [
            np.bincount(at, weights, minlength=len(buffers) + 1)
            for weights in (None, outcomes.length, outcomes.tracking_error)
        ]
        return {
            bound: Buffer(
                episodes=buffer.episodes + int(totals[0][k]),
                length=buffer.length + float(totals[1][k]),
                error=buffer.error + float(totals[2][k]),
            )
            for k, (bound, buffer) in enumerate(buffers.items(), 1)
        }

    def _propose(
        self, state: AdrState, bounds: dict[str, float], reason: str
    ) -> AdrState:
        levels = {
            group: round(fmean(bounds[bound] for bound in mine), 6)
            for group, mine in bounds_by_group(bounds).items()
        }
        return put_on_trial(
            state,
            self.cfg,
            levels,
            reason,
            AdrProposal,
            bounds=bounds,
            boundary=self.adr.boundary,
            nats=nats_per_dimension(bounds, self.plan),
        )


def nats_per_dimension(bounds: Mapping[str, float], plan: Plan) -> float:
    """Return the mean over parameters of ln(width of the range / width of the limit).

    So 0 is the whole limit. A parameter counts once, however many draws it has; one that
    no level widens does not count. A range counts with at least 1 % of its limit.
    """
    ranges = AtBounds(bounds, 0.0).ranges(plan.catalogue)
    parameters = plan.catalogue.parameters
    shares = [
        ranges[name].width / parameters[name].limit.width
        for name in chain.from_iterable(plan.groups.values())
    ]
    return round(fmean(log(max(LEAST, share)) for share in shares), 4)


def _explain(
    full: Sequence[str], before: Mapping[str, float], after: Mapping[str, float]
) -> str:
    """Say which bounds were tested, and the outcome of each."""
    if not full:
        return "no buffer is full"
    parts = [f"{len(full)} of {counted(len(before), 'bound')} tested"]
    for word, way in (("widened", 1.0), ("narrowed", -1.0)):
        if moved := {b for b in full if way * after[b] > way * before[b]}:
            parts.append(f"{word} {_name(moved, after)}")
    return ", ".join(parts)


def _name(moved: Set[str], bounds: Mapping[str, float]) -> str:
    """Name bounds with their levels; the group, if all of it moved to one level."""
    levels = {}
    for group, mine in bounds_by_group(bounds).items():
        found = {bound: bounds[bound] for bound in mine if bound in moved}
        as_one = len(found) == len(mine) and len({*found.values()}) == 1
        levels |= {group: bounds[mine[0]]} if as_one else found
    return ", ".join(f"{name} {level:.3g}" for name, level in levels.items())
