"""Settings of the curriculum; gates and frontiers are by default as published."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from horizon_rl.domains.catalogue import Catalogue
from horizon_rl.support.bounds import (
    Amount,
    Bounded,
    Count,
    CountOrNone,
    EnvSteps,
    Share,
    Within,
)
from horizon_rl.support.errors import require


@dataclass(frozen=True, kw_only=True)
class GateCfg(Bounded):
    """Thresholds of the feasibility gate L and the preservation gate C."""

    min_length: Share = 0.85
    """Gate L: least mean episode length, as a share of the longest possible."""
    max_error: Amount = 0.5
    """Gate L: largest mean tracking error, m/s."""
    error_margin: Amount = 0.05
    """Gate C: allowed growth of the tracking error in the checkpoint's ranges, as a
    share of the checkpoint's own. HORIZON has `leap.margin` instead."""
    error_slack: Amount = 0.0
    """Gate C: allowed growth on top of that, m/s; 5 % of a small error is noise."""
    return_margin: Amount = 0.05
    """Gate C: allowed loss of return, as a share of the checkpoint's own. HORIZON has
    `leap.margin` instead."""
    preservation: bool = True
    """Both gates decide; switched off, gate L alone does."""


@dataclass(frozen=True, kw_only=True)
class ClockCfg(Bounded):
    """Levels by the clock, whatever the evidence says: a control to compare with."""

    start: Share = 0.0
    """Level of all groups in the first phase."""
    rise: Share = 0.0
    """Gain of level per phase."""
    end: Share = 1.0
    """Level at which it stops."""

    def __post_init__(self):
        super().__post_init__()
        require("clock.end", self.end, self.start, 1.0)

    def level_at(self, phase: int) -> float:
        return min(self.end, self.start + self.rise * phase)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run allows, for methods with settings that follow from it."""

    catalogue: Catalogue = field(default_factory=lambda: Catalogue(()))
    """The groups to widen."""
    phases: int = 0
    """Phases that the budget of env steps allows; 0: it has no limit."""
    episodes: int = 0
    """Episodes of a phase that have time for their whole length, in all worlds."""

    @classmethod
    def of(
        cls, catalogue: Catalogue, groups: Sequence[str], phases: int, episodes: int
    ) -> "Plan":
        """Return the plan of a run that widens some groups of a catalogue."""
        widened = Catalogue(tuple(catalogue[group] for group in groups))
        return cls(catalogue=widened, phases=phases, episodes=episodes)

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Name the parameters of every group that levels widen."""
        return {
            group.name: tuple(
                f"{group.name}.{parameter.name}"
                for parameter in group.parameters
                if parameter.limit != parameter.baseline
            )
            for group in self.catalogue.groups
        }


@dataclass(frozen=True, kw_only=True)
class CurriculumCfg(Bounded):
    """Gates and budget of every method; how the paper's frontiers advance and retreat."""

    grow: Annotated[float, Within(1.0, 1e6)] = 1.5
    """Paper: factor on the mastered level, for a coarse proposal."""
    min_step: Annotated[float, Within(1e-3, 1.0)] = 0.05
    """Paper: least step outward of a coarse proposal."""
    alpha: Annotated[float, Within(1e-2, 0.99)] = 0.4
    """Paper: where between mastered (0) and failed (1) level a recovery proposal lies."""
    max_rungs: Count = 3
    """Paper: failed recovery proposals until a bracket counts as a local boundary."""
    min_bracket: Annotated[float, Within(1e-6, 1.0)] = 0.01
    """Paper: a bracket narrower than this is a local boundary, whatever its rung."""
    reopen_after: Count = 3
    """Paper: commits in other groups until a failed level is due for another try."""
    reopen_gain: Share = 0.02
    """Paper: least gain of level for such a commit to count."""
    max_reopenings: CountOrNone = 5
    """Paper: how often one frontier may try its failed level again."""
    joint: bool = False
    """Paper: advance all groups together, as one frontier, not one at a time."""
    rollback: bool = True
    """Paper: after a failed phase the checkpoint is restored; switched off, a failed
    candidate counts as mastered."""
    restore: bool = True
    """A rollback restores the weights of the checkpoint; switched off, levels retreat as
    after a rollback but the weights are kept."""
    clock: ClockCfg | None = None
    """Set levels by the clock instead of by evidence."""
    gates: GateCfg = field(default_factory=GateCfg)
    """Thresholds of the two gates."""
    max_phases: Count = 200
    """Budget: phases, at most."""
    max_env_steps: EnvSteps = 0
    """Budget: environment steps, rolled-back phases included; 0 is no limit."""
