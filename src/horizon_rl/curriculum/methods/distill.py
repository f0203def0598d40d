"""Distillation as a method: where its teachers are at home, and what they cost.

How a student learns from them is `horizon_rl.learning.distill`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from horizon_rl.curriculum.config import CurriculumCfg
from horizon_rl.curriculum.evidence import Evidence
from horizon_rl.curriculum.frontier import Frontier
from horizon_rl.curriculum.method import (
    WholePhases,
    check_groups,
    conclude_kept,
    judge_phase,
    keep,
    on_trial,
    put_on_trial,
    register_method,
)
from horizon_rl.curriculum.state import Decision, Proposal, State, describe_levels
from horizon_rl.domains.mixture import OneOf
from horizon_rl.support.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Teacher:
    """A policy that labels the worlds of its own domain."""

    name: str
    """As it was asked for."""
    levels: dict[str, float]
    """Its domain."""
    env_steps: int
    """What its training cost, its own teachers' included."""
    digest: str
    """Identifies its weights."""


@dataclass(frozen=True, kw_only=True)
class DistillProposal(Proposal):
    """A phase in the domains of all teachers; `levels` are the widest of each group."""

    domains: tuple[dict[str, float], ...]
    """Levels of every teacher's domain, in the teachers' order."""
    band_and_line = "least to largest level of teachers", "widest teacher"

    @property
    def distribution(self) -> OneOf:
        return OneOf(self.domains)

    def band_of(self, group: str) -> tuple[float, float]:
        return min(each.get(group, 0.0) for each in self.domains), self.levels[group]


@register_method("distill")
@dataclass(frozen=True, kw_only=True)
class Distill(WholePhases):
    """Trains in the domains of teachers, side by side and throughout.

    Weights are always kept. Their env steps are the run's: it starts with them spent.
    """

    cfg: CurriculumCfg = field(default_factory=CurriculumCfg)
    """The budget. Verdicts are on record only."""
    teachers: tuple[Teacher, ...] = ()
    """In the order in which instances are marked with them."""

    outcome_parameters = None

    @property
    def charged(self) -> int:
        """Environment steps of all teachers; of one that has several domains, once."""
        # A run costs more than the checkpoint that it leaves, if both are named.
        by_cost = sorted(self.teachers, key=lambda each: each.env_steps)
        return sum({each.digest: each.env_steps for each in by_cost}.values())

    def describe(self) -> str:
        """Say what the settings mean in this run."""
        domains = "; ".join(
            f"{each.name}: {describe_levels(each.levels) or 'baseline'}"
            for each in self.teachers
        )
        cost = f"{self.charged / 1e6:.2f} M env steps are charged"
        return f"Teachers: {domains}. Their {cost}"

    def start(self, groups: Sequence[str]) -> State:
        check_groups(groups)
        if not self.teachers:
            raise InputError("method distill needs --teachers: policies or runs")
        for teacher in self.teachers:
            home = {name: level for name, level in teacher.levels.items() if level}
            if foreign := [name for name in home if name not in groups]:
                kept = {name: home[name] for name in home if name in groups}
                other = "or take another teacher"
                if kept:
                    domain = ",".join(f"{name}={x:g}" for name, x in kept.items())
                    other = f"or its domain ({teacher.name}@{domain})"
                raise InputError(
                    f"teacher {teacher.name} is at home in {', '.join(foreign)}, which "
                    f"--groups lacks: name them, {other}"
                )
        frontiers = tuple(Frontier(name=name, groups=(name,)) for name in groups)
        return self._propose(State(frontiers=frontiers, env_steps=self.charged))

    def step(self, state: State, evidence: Evidence) -> tuple[State, Decision]:
        proposal, verdict = on_trial(state), judge_phase(state, evidence, self.cfg)
        decision = conclude_kept(proposal, verdict, proposal.reason)
        return self._propose(keep(state, evidence)), decision

    def _propose(self, state: State) -> State:
        domains = tuple(teacher.levels for teacher in self.teachers)
        levels = {
            group: max(each.get(group, 0.0) for each in domains)
            for group in state.mastered
        }
        reason = f"{len(domains)} teacher{'s' * (len(domains) > 1)}"
        return put_on_trial(
            state, self.cfg, levels, reason, DistillProposal, domains=domains
        )
