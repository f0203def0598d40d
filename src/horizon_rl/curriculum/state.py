"""The values that go round: proposal, decision, and the state between phases."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from horizon_rl.curriculum.frontier import Frontier
from horizon_rl.curriculum.gates import Verdict
from horizon_rl.domains.distribution import AtLevels, Distribution

Kind = Literal[
    "baseline", "coarse", "recovery", "retry", "leap", "consolidate", "clock", "other"
]
Action = Literal["commit", "rollback", "hold", "retreat"]
EventKind = Literal["unlock", "reopen", "boundary", "complete"]


def describe_levels(levels: Mapping[str, float]) -> str:
    """Say levels in words; a level that all groups share is said once."""
    if len(set(levels.values())) == 1 and len(levels) > 1:
        return f"all at {next(iter(levels.values())):.3g}"
    return ", ".join(f"{group} {level:.3g}" for group, level in levels.items())


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """One phase to train: the levels to train at, and why these."""

    phase: int
    kind: Kind
    frontier: str | None
    """Frontier on trial; None where several are, or none, as at the baseline."""
    candidate: float
    """Level on trial; the mean where several frontiers are."""
    levels: dict[str, float]
    """Level of every group in this phase."""
    mastered: dict[str, float]
    """Level of every group in the checkpoint: where gate C compares."""
    reason: str
    scouts: dict[str, dict[str, float]] | None = None
    """Levels that the policy is scouted at when the phase ends, by name."""
    band_and_line = "10 to 90 % of instances", "median"
    """What figures call `band_of` and `levels`, where there are bands."""

    @property
    def distribution(self) -> Distribution:
        """The instances to train on.

        A method with another distribution has a proposal of its own: a subclass with
        fields that describe it, and this property over them.
        """
        return AtLevels(self.levels)

    @property
    def trial(self) -> str:
        """What is on trial, in words."""
        if self.kind == "baseline":
            return "baseline"
        if self.frontier is not None:
            return f"{self.frontier} {self.candidate:.3g}"
        return describe_levels(self.levels)

    def band_of(self, group: str) -> tuple[float, float] | None:
        """Return between which levels most instances of a group lie; None: all at one."""

    def level_of(self, frontier: Frontier) -> float | None:
        """Return the level at which a frontier is on trial; None where it is not."""
        if frontier.name == self.frontier:
            return self.candidate
        for group in frontier.groups:
            if self.levels.get(group) != self.mastered.get(group):
                return self.levels.get(group)
        return None


@dataclass(frozen=True)
class Event:
    """Something that happened to a frontier, for the record."""

    kind: EventKind
    frontier: str
    level: float


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What to do after a phase, and why."""

    phase: int
    kind: Kind
    frontier: str | None
    candidate: float
    action: Action
    """commit: the candidate is mastered, save a checkpoint. rollback: restore the last
    commit. hold: keep the weights and train the same once more. retreat: the levels of
    a rollback, but keep the weights."""
    verdict: Verdict
    reason: str
    events: tuple[Event, ...] = ()
    levels: dict[str, float] | None = None
    """Levels that were committed, where they are not those of the proposal."""

    @property
    def keeps_weights(self) -> bool:
        return self.action != "rollback"


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The last commit, as gate C compares with it."""

    phase: int
    """Phase that committed it, and drew the scenarios it was measured on."""
    distribution: Distribution
    """What it was trained on."""
    error: float | None
    """Its tracking error on those scenarios, m/s."""
    value: float | None
    """Its return on them."""
    error_by_size: dict[str, float] = field(default_factory=dict)
    """Its tracking error by size of body, m/s, where the worlds know."""

    def unmeasured(self) -> "Reference":
        """Return it as one to be measured before the next phase trains."""
        return replace(self, error=None, value=None, error_by_size={})


@dataclass(frozen=True)
class ProbeSet:
    """Frozen scenarios that the policy is measured on at a phase's end."""

    phase: int | None
    """Phase whose random stream draws them; None: the run's own, the same throughout."""
    distribution: Distribution


@dataclass(frozen=True, kw_only=True)
class State:
    """Everything the curriculum knows between two phases."""

    frontiers: tuple[Frontier, ...]
    phase: int = 0
    """Phases judged so far, which is also the id of the next."""
    reference: Reference | None = None
    """The last commit; before it there is nothing to preserve or restore."""
    iterations: int = 0
    """Iterations of training spent, rolled-back phases included."""
    env_steps: int = 0
    """Environment steps spent, rolled-back phases included."""
    proposal: Proposal | None = None
    """The phase on trial; None once the run has ended."""
    ended: str | None = None
    """Why the run ended, in words; None while it goes on."""

    @property
    def mastered(self) -> dict[str, float]:
        """Mastered level of every group."""
        return {group: f.mastered for f in self.frontiers for group in f.groups}

    @property
    def difficulty(self) -> float:
        """Mean mastered level over the run's groups."""
        levels = self.mastered.values()
        return sum(levels) / max(len(levels), 1)

    @property
    def probes(self) -> dict[str, ProbeSet]:
        """What the phase on trial must be measured on, by name.

        `candidate`: fresh scenarios of the phase itself; should it be committed, they
        are the next reference. `checkpoint`: those of the last commit, where gate C
        compares. `anchor`: level 0, which shows slow drift. Scouts, if the method asks
        for any, are drawn like the candidate: one random stream at all their levels.
        """
        if self.proposal is None:
            return {}
        sets = {
            "anchor": ProbeSet(None, AtLevels(dict.fromkeys(self.mastered, 0.0))),
            "candidate": ProbeSet(self.proposal.phase, self.proposal.distribution),
        }
        if self.reference:
            known = self.reference
            sets["checkpoint"] = ProbeSet(known.phase, known.distribution)
        for name, levels in (self.proposal.scouts or {}).items():
            sets[name] = ProbeSet(self.proposal.phase, AtLevels(levels))
        return sets
