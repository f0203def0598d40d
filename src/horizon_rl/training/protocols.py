"""What the loop sees: worlds, something that learns in them, and where it is recorded.

Our simulator and PPO, the rehearsal's synthetic learner, Gymnasium and mjlab implement
these. Explicit subclasses inherit what has a body here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from horizon_rl.curriculum import (
    CheckpointRef,
    Episodes,
    Evidence,
    ProbeSet,
    Proposal,
    State,
)
from horizon_rl.curriculum.evidence import ProbedEpisodes
from horizon_rl.domains.distribution import Distribution
from horizon_rl.runs.directory import PhaseTimes


@dataclass(frozen=True, kw_only=True)
class Iteration:
    """What one iteration of collecting and learning showed."""

    number: int = 0
    """Iterations done, this one included; the loop counts."""
    env_steps: int = 0
    """Environment steps done, by all ranks; the loop counts."""
    collect_s: float = 0.0
    learn_s: float = 0.0
    reward: float = 0.0
    """Mean reward per control step."""
    episode_length: float | None = None
    """Mean length of the episodes that ended lately, as a share of the longest."""
    tracking_error: float | None = None
    """Their mean tracking error, m/s."""
    unhealthy: int = 0
    """Episodes in which the physics broke; the loop adds up those of the phase so far."""
    overflow: int = 0
    """Steps of a world in which its contacts did not all fit the simulator's memory;
    likewise."""
    figures: dict[str, float] = field(default_factory=dict)
    """The update's own figures."""


@dataclass(frozen=True, eq=False)
class PhaseResult:
    """What a phase showed: the numbers that are judged, and the episodes behind them."""

    evidence: Evidence
    window: Episodes
    """Training episodes of gate L."""
    probes: Mapping[str, ProbedEpisodes]
    """Episodes with mean actions, by probe set."""
    probe_s: float
    """Seconds that the probes took."""


class Worlds(Protocol):
    """Simulated worlds that a policy is trained and measured in."""

    max_length: int
    """Control steps of the longest episode."""

    def begin(self, phase: int, distribution: Distribution) -> None:
        """Reset all worlds to instances of a distribution, and forget their episodes.

        All randomness follows from the worlds' seed and the phase's number: a retry is
        another phase and does not replay the failure, a phase that runs again after a
        crash repeats itself.
        """
        ...

    def prepare(self, phase: int, distribution: Distribution) -> None:
        """Get ready for a phase that may come; to do nothing is fine."""
        del phase, distribution

    def step(self, actions: Any) -> Any:
        """Take one control step in all worlds; only the learner calls this."""
        ...

    def episodes(self, parameters: tuple[str, ...] | None = None) -> Episodes:
        """Return the episodes that ended since `begin`.

        Args:
            parameters: Their instances' values of these come along; None: none do.
        """
        ...

    def probe(
        self, policy: Any, sets: Mapping[str, ProbeSet]
    ) -> dict[str, ProbedEpisodes]:
        """Run a policy's mean actions on frozen scenarios; training is not disturbed.

        A set of the same phase has the same scenarios every time. Sets that the worlds
        keep no scenarios for are left out.
        """
        ...


class Learner(Protocol):
    """Something that learns in worlds, iteration by iteration."""

    num_steps: int
    """Control steps that each world contributes to an iteration."""
    steps_per_iteration: int
    """Environment steps of an iteration, by all ranks."""

    @property
    def policy(self) -> Any:
        """What `Worlds.probe` can run: mean actions."""
        ...

    def begin(self, worlds: Any) -> None:
        """Start a phase in worlds that have just begun it."""
        ...

    def iterate(self, worlds: Any) -> Iteration:
        """Collect and learn once; the counters of the result are the loop's to fill.

        Raises:
            NonFiniteError: The update diverged and was refused.
        """
        ...

    def snapshot(self) -> Any:
        """Copy everything that learns."""
        ...

    def restore(self, snapshot: Any) -> None:
        """Bring back a snapshot, after a rollback."""
        ...


class Recorder:
    """Where a run is recorded, and what ends it besides the curriculum.

    This one keeps nothing and never ends a run; others override what they need.
    """

    def has_budget(self) -> bool:
        """Tell whether another phase may begin."""
        return True

    def progress(self, env_steps: int) -> float | None:
        """Return which share of the run's env steps these are; None: it has no limit."""

    def last_commit(self) -> Any:
        """Return the snapshot that a rollback restores, where the learner is not at it.

        So it is in a run that goes on with a phase on hold; else None.
        """
        return None

    def record_iteration(self, phase: int, iteration: Iteration) -> None:
        """Keep an iteration's figures."""

    def record_evidence(self, phase: int, result: PhaseResult) -> None:
        """Keep the episodes behind a phase's numbers, before it is decided."""

    def save(self, proposal: Proposal, after: State) -> CheckpointRef | None:
        """Write a checkpoint of what was learnt in a phase that is kept.

        Args:
            proposal: The phase.
            after: The curriculum's state once the phase is on record.
        """

    def record_times(self, times: PhaseTimes) -> None:
        """Keep where a phase's seconds went."""
