"""Settings of the curriculum; gates and frontiers are by default as published."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from horizon_rl.domains.catalogue import Catalogue
from horizon_rl.support.errors import require


@dataclass(frozen=True, kw_only=True)
class GateCfg:
    """Thresholds of the feasibility gate L and the preservation gate C."""

    min_length: float = 0.85
    """Gate L: least mean episode length, as a share of the longest possible."""
    max_error: float = 0.5
    """Gate L: largest mean tracking error, m/s."""
    error_margin: float = 0.05
    """Gate C: allowed growth of the tracking error in the checkpoint's ranges, as a
    share of the checkpoint's own. HORIZON has `leap.margin` instead."""
    error_slack: float = 0.0
    """Gate C: allowed growth on top of that, m/s; 5 % of a small error is noise."""
    return_margin: float = 0.05
    """Gate C: allowed loss of return, as a share of the checkpoint's own. HORIZON has
    `leap.margin` instead."""
    preservation: bool = True
    """Both gates decide; switched off, gate L alone does."""

    def __post_init__(self):
        require("min_length", self.min_length, 0.0, 1.0)
        for name in ("max_error", "error_margin", "error_slack", "return_margin"):
            require(name, getattr(self, name), 0.0)


@dataclass(frozen=True, kw_only=True)
class ClockCfg:
    """Levels by the clock, whatever the evidence says: a control to compare with."""

    start: float = 0.0
    """Level of all groups in the first phase."""
    rise: float = 0.0
    """Gain of level per phase."""
    end: float = 1.0
    """Level at which it stops."""

    def __post_init__(self):
        require("clock.start", self.start, 0.0, 1.0)
        require("clock.rise", self.rise, 0.0, 1.0)
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
        """Name the parameters of every group that can be widened: no constants."""
        return {
            group.name: tuple(
                f"{group.name}.{parameter.name}"
                for parameter in group.parameters
                if parameter.limit.width > 0.0
            )
            for group in self.catalogue.groups
        }


@dataclass(frozen=True, kw_only=True)
class CurriculumCfg:
    """Gates and budget of every method; how the paper's frontiers advance and retreat."""

    grow: float = 1.5
    """Paper: factor on the mastered level, for a coarse proposal."""
    min_step: float = 0.05
    """Paper: least step outward of a coarse proposal."""
    alpha: float = 0.4
    """Paper: where between mastered (0) and failed (1) level a recovery proposal lies."""
    max_rungs: int = 3
    """Paper: failed recovery proposals until a bracket counts as a local boundary."""
    min_bracket: float = 0.01
    """Paper: a bracket narrower than this is a local boundary, whatever its rung."""
    reopen_after: int = 3
    """Paper: commits in other groups until a failed level is due for another try."""
    reopen_gain: float = 0.02
    """Paper: least gain of level for such a commit to count."""
    max_reopenings: int = 5
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
    max_phases: int = 200
    """Budget: phases, at most."""
    max_env_steps: int = 0
    """Budget: environment steps, rolled-back phases included; 0 is no limit."""

    def __post_init__(self):
        require("grow", self.grow, 1.0)
        require("min_step", self.min_step, 1e-3, 1.0)
        require("alpha", self.alpha, 1e-2, 1.0 - 1e-2)
        require("max_rungs", self.max_rungs, 1, whole=True)
        require("min_bracket", self.min_bracket, 1e-6, 1.0)
        require("reopen_after", self.reopen_after, 1, whole=True)
        require("reopen_gain", self.reopen_gain, 0.0, 1.0)
        require("max_reopenings", self.max_reopenings, 0, whole=True)
        require("max_phases", self.max_phases, 1, whole=True)
        require("max_env_steps", self.max_env_steps, 0, whole=True)
