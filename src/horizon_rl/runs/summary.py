"""What a run came to so far, as plain data: the stable `horizon status --json`.

The fields are the keys of the JSON; `runs.summarise` fills them.
"""

from dataclasses import dataclass
from typing import Literal

from horizon_rl.curriculum import Decision, Proposal
from horizon_rl.curriculum.state import Action
from horizon_rl.runs.read import RunKind
from horizon_rl.runs.results import BeforeAfter

Standing = Literal["running", "finished", "stopped"]


@dataclass(frozen=True, kw_only=True)
class BudgetSummary:
    """What the run was started with, or given when it was last resumed."""

    steps: int | None
    """Environment steps; None is no limit."""
    minutes: float | None
    """Minutes; None is no limit."""
    share: float
    """Share of it that judged phases have spent: the larger of the two."""
    spent: str | None
    """Which is spent, in words; None while none is."""


@dataclass(frozen=True, kw_only=True)
class FrontierSummary:
    """Where a frontier stands."""

    name: str
    groups: tuple[str, ...]
    status: str
    """coarse, recovery, pending retry, boundary or complete."""
    mastered: float
    candidate: float | None
    """Level on trial; None where it is not."""
    failed: float | None
    rung: int
    coverage: dict[str, float | None]
    """Coverage of each of its groups; None where the run has no catalogue."""
    last_level: float | None
    """Level at which it was tried last, alone or with others."""
    last_decision: Decision | None
    """What became of that, by which numbers."""


@dataclass(frozen=True, kw_only=True)
class Spent:
    """Phases of one verdict, and what they cost."""

    phases: int
    env_steps: int
    share: float
    """Share of all environment steps."""
    probe_env_steps: int | None
    """How many of `env_steps` were spent in probes; None where that is not known."""


@dataclass(frozen=True, kw_only=True)
class Times:
    """Where the seconds of judged phases went."""

    phases: int
    """Phases on record; fewer than were judged where lines are missing."""
    total_s: float
    train_s: float
    probe_s: float
    settle_s: float
    """Judging, writing or restoring the checkpoint."""
    train_share: float
    probe_share: float
    settle_share: float


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far the phase under way is, as of its last iteration."""

    iterations: int
    """Iterations done."""
    max_iterations: int | None
    """Iterations it lasts unless a look ends it; None where that is not known."""
    env_steps: int | None
    """Environment steps so far; not yet among those of the run."""
    steps_per_s: float | None
    """Environment steps a second, lately."""
    reward: float | None
    """Mean reward per control step."""
    episode_length: float | None
    """Mean length of the episodes that ended lately, as a share of the longest."""
    tracking_error: float | None
    """Their mean tracking error, m/s."""


@dataclass(frozen=True, kw_only=True)
class Drift:
    """The policy at level 0 as first and as last committed."""

    first_phase: int
    last_phase: int
    first_error: float
    """Tracking error, m/s."""
    last_error: float
    first_return: float | None
    last_return: float | None


@dataclass(frozen=True, kw_only=True)
class CheckpointSummary:
    """The checkpoint that the run would go on from."""

    path: str
    exists: bool


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """A run, as far as its files tell."""

    run: str
    """Its directory."""
    kind: RunKind
    """`other`: a curriculum in somebody's own training loop."""
    method: str | None
    start: str | None
    """What training started from, in words."""
    seed: int | None
    ranks: int
    standing: Standing
    """running: a live process holds the journal. stopped: none does, and it is not at its
    end; on purpose or by a crash."""
    ended: str | None
    """Why it is finished, in words."""
    resume: str | None
    """Command that goes on with a stopped run."""
    age_s: float
    """Seconds since it last wrote a line."""
    is_silent: bool
    """It is running, yet shows nothing for so long that it may hang."""
    budget: BudgetSummary | None
    phases: int
    """Phases judged."""
    boundaries: int
    """Boundaries met on the way."""
    env_steps: int
    """Environment steps of judged phases."""
    unhealthy: int
    """Episodes in which the physics broke, the phase under way included."""
    overflow: int
    """Steps of worlds whose contacts did not fit the simulator's memory, likewise."""
    by_action: dict[Action, Spent]
    """Phases and steps by what was decided: commit, rollback, hold, retreat."""
    difficulty: float
    """Mean mastered level over the run's groups."""
    frontiers: tuple[FrontierSummary, ...]
    last_decision: Decision | None
    proposal: Proposal | None
    """The phase under way, or to be run again; None at the end."""
    progress: Progress | None
    """How far that phase is; None where no iteration of it is on record."""
    times: Times | None
    anchor: Drift | None
    """None where no commit was measured at level 0."""
    checkpoint: CheckpointSummary | None
    """None before the first, and where the run keeps none."""
    results: BeforeAfter | None
    """Success at its start and its end; None where that was not measured."""
