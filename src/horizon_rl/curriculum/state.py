"""The values that go round: proposal, decision, and the state between phases."""

from dataclasses import dataclass
from typing import Literal

from horizon_rl.curriculum.frontier import Frontier
from horizon_rl.curriculum.gates import Verdict

Kind = Literal["baseline", "coarse", "recovery", "retry", "clock"]
Action = Literal["commit", "rollback", "hold"]
EventKind = Literal["unlock", "reopen", "boundary", "complete"]


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """One phase to train: the levels to train at, and why these."""

    phase: int
    kind: Kind
    frontier: str | None
    """Frontier on trial; None in phase 0, which tries the baseline itself."""
    candidate: float
    """Level on trial."""
    levels: dict[str, float]
    """Level of every group in this phase."""
    mastered: dict[str, float]
    """Level of every group in the checkpoint: where gate C compares."""
    reason: str


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
    checkpoint. hold: keep the weights and train the same once more."""
    verdict: Verdict
    reason: str
    events: tuple[Event, ...]

    @property
    def keeps_weights(self) -> bool:
        return self.action != "rollback"


@dataclass(frozen=True, kw_only=True)
class State:
    """Everything the curriculum knows between two phases."""

    frontiers: tuple[Frontier, ...]
    phase: int = 0
    """Phases judged so far, which is also the id of the next."""
    has_checkpoint: bool = False
    """A first commit exists; before it there is nothing to preserve or restore."""
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
