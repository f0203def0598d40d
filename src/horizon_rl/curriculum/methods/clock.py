"""Levels by the clock, whatever the evidence says: the control of every comparison."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from horizon_rl.curriculum.config import ClockCfg, CurriculumCfg
from horizon_rl.curriculum.evidence import Evidence
from horizon_rl.curriculum.frontier import Frontier, commit
from horizon_rl.curriculum.method import (
    WholePhases,
    book,
    budget_spent,
    conclude,
    judge_phase,
    on_trial,
    register_method,
)
from horizon_rl.curriculum.state import Decision, Event, Proposal, State
from horizon_rl.support.errors import InputError


@register_method("clock")
@dataclass(frozen=True, kw_only=True)
class Clock(WholePhases):
    """One level for all groups, set by the phase's number; gates are on record only."""

    cfg: CurriculumCfg = field(default_factory=lambda: CurriculumCfg(clock=ClockCfg()))
    """Where the clock starts and how it rises; gates, and the budget."""

    outcome_parameters = None

    def start(self, groups: Sequence[str]) -> State:
        if len(set(groups)) < len(groups):
            raise InputError(f"groups are {tuple(groups)}: name each once")
        frontier = Frontier(name="joint", groups=tuple(groups))
        return self._propose(State(frontiers=(frontier,)))

    def step(self, state: State, evidence: Evidence) -> tuple[State, Decision]:
        proposal, (before,) = on_trial(state), state.frontiers
        verdict = judge_phase(state, evidence, self.cfg)
        level, gates = proposal.candidate, "passed" if verdict.passed else "failed"
        reason = f"{before.name} {level:.3g} by the clock, gates {gates}: "
        after = commit(before, level, self.cfg)
        arrives = after.status == "complete" != before.status
        events = (Event("complete", before.name, level),) if arrives else ()
        judged = replace(book(state, evidence, "commit"), frontiers=(after,))
        decision = conclude(
            proposal, "commit", verdict, reason + verdict.reason, events
        )
        return self._propose(judged), decision

    def _propose(self, state: State) -> State:
        if spent := budget_spent(state, self.cfg):
            return replace(state, ended=spent)
        clock, (frontier,) = self.cfg.clock or ClockCfg(), state.frontiers
        level = clock.level_at(state.phase)
        tried = replace(frontier, unlocked=True, last_phase=state.phase)
        proposal = Proposal(
            phase=state.phase,
            kind="clock",
            frontier=frontier.name,
            candidate=level,
            levels=dict.fromkeys(frontier.groups, level),
            mastered=state.mastered,
            reason="by the clock",
        )
        return replace(state, frontiers=(tried,), proposal=proposal)
