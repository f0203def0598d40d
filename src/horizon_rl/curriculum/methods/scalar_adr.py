"""Scalar ADR: one difficulty for all groups, moved by single successes and failures."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from horizon_rl.curriculum.config import CurriculumCfg, GateCfg, Plan
from horizon_rl.curriculum.evidence import Evidence, Outcomes
from horizon_rl.curriculum.frontier import Frontier
from horizon_rl.curriculum.method import (
    WholePhases,
    arrivals,
    check_groups,
    conclude_kept,
    judge_phase,
    keep,
    on_trial,
    put_on_trial,
    register_method,
)
from horizon_rl.curriculum.state import Decision, State
from horizon_rl.support.errors import InputError
from horizon_rl.support.words import counted

HARDEST = 10
"""Difficulty of a world, at most."""
LEAST = 0.1
"""Mean difficulty, as a share of the hardest, below which the level stays as it is."""


@dataclass(frozen=True, kw_only=True)
class ScalarState(State):
    """What scalar ADR remembers."""

    difficulties: tuple[int, ...] = ()
    """Difficulty of every world, 0 to 10; empty: no world has told yet."""


@register_method("scalar-adr")
@dataclass(frozen=True, kw_only=True)
class ScalarAdr(WholePhases):
    """Isaac Lab's scheduler of difficulty, in phases.

    Every world has a difficulty: one up with each episode that succeeds, one down with
    each that fails. Their mean is the level of all groups. No bound is tested, and
    weights are always kept.
    """

    cfg: CurriculumCfg = field(default_factory=CurriculumCfg)
    """Gate L, by which an episode succeeds; and the budget. Verdicts are on record only."""
    plan: Plan = field(default_factory=Plan)
    """How many phases the run allows."""

    outcome_parameters = ()

    def start(self, groups: Sequence[str]) -> State:
        check_groups(groups)
        if (self.plan.phases or self.cfg.max_phases) < 2:
            raise InputError(
                "the budget ends before the level of scalar ADR can change: it allows 1 "
                "phase. Accepted: a larger budget of env steps or phases"
            )
        frontiers = tuple(Frontier(name=name, groups=(name,)) for name in groups)
        return self._propose(ScalarState(frontiers=frontiers), 0.0, "the baseline")

    def step(self, state: State, evidence: Evidence) -> tuple[State, Decision]:
        before, proposal = cast(ScalarState, state), on_trial(state)
        verdict = judge_phase(state, evidence, self.cfg)
        told = before.difficulties
        if evidence.outcomes:
            told = count(told, evidence.outcomes, self.cfg.gates)
        after = replace(keep(before, evidence), difficulties=told)
        mean = sum(told) / max(1, len(told)) / HARDEST
        level = round(mean, 6) if mean >= LEAST else proposal.candidate
        news = f"mean difficulty of {counted(len(told), 'world')} {mean:.3g}"
        decision = conclude_kept(proposal, verdict, news, arrivals(before, after))
        return self._propose(after, level, news), decision

    def _propose(self, state: ScalarState, level: float, reason: str) -> ScalarState:
        levels = dict.fromkeys(state.mastered, level)
        return put_on_trial(state, self.cfg, levels, reason, candidate=level)


def count(
    difficulties: tuple[int, ...], outcomes: Outcomes, gates: GateCfg
) -> tuple[int, ...]:
    """Move every world's difficulty by its episodes, in the order of their starts."""
    if len(outcomes.world) < len(outcomes):
        raise InputError("scalar-adr needs to know the world of every episode")
    after = list(difficulties)
    after += [0] * (max(outcomes.world) + 1 - len(after))
    told = zip(outcomes.world, outcomes.length, outcomes.tracking_error, strict=True)
    for world, length, error in told:
        succeeds = length >= gates.min_length and error <= gates.max_error
        after[world] = min(HARDEST, max(0, after[world] + (1 if succeeds else -1)))
    return tuple(after)
