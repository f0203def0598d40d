"""The body of a session: a robot, what was done to it, and what it carries."""

from dataclasses import dataclass, replace
from functools import lru_cache

from horizon_rl.robots import (
    INTERVENTIONS,
    Robot,
    build_robot,
    load_body,
    load_robot,
    preset_names,
)
from horizon_rl.robots.interventions import hang_balls
from horizon_rl.support.errors import InputError

PAPER_ROBOTS = ("go2", "go1", "a1", "spot", "cyberdog1", "b1", "b2")
"""The seven robots that the paper evaluates on."""


@dataclass(frozen=True, kw_only=True)
class Outfit:
    """A body by name, and changes to it that a user makes by hand."""

    robot: str
    """Preset, or MJCF file by its path."""
    interventions: tuple[str, ...] = ()
    """Of `INTERVENTIONS`, in that order."""
    payload_kg: float = 0.0
    """Mass of a ball that hangs below the trunk; 0: none."""
    payload_x_m: float = 0.0
    """How far before the trunk's origin it hangs."""

    @property
    def can_change(self) -> bool:
        """Whether interventions apply: they know the bodies built here, not a file's."""
        return self.robot in preset_names()

    @property
    def name(self) -> str:
        """As the command line writes it: go2+stilts."""
        return "+".join((self.robot, *self.interventions))

    def build(self) -> Robot:
        """Return the robot, ready to simulate."""
        if self.payload_kg:
            return _build_loaded(self)
        return load_robot(self.name)

    def with_intervention(self, name: str, present: bool) -> "Outfit":
        """Add or take away an intervention."""
        chosen = {*self.interventions} - {name} | ({name} if present else set())
        order = tuple(key for key in INTERVENTIONS if key in chosen)
        return replace(self, interventions=order)


def parse_outfit(name: str) -> Outfit:
    """Read a preset with interventions (go2+stilts), or the path of an MJCF file."""
    load_robot(name)  # Refuses what is none of these.
    if name.split("+")[0] in preset_names():
        robot, *interventions = name.split("+")
        return Outfit(robot=robot, interventions=tuple(interventions))
    return Outfit(robot=name)


@lru_cache(maxsize=32)  # A slider makes many.
def _build_loaded(outfit: Outfit) -> Robot:
    if not outfit.can_change:
        raise InputError(f"{outfit.robot}: a payload hangs below presets only")
    ball = outfit.payload_kg, outfit.payload_x_m
    return build_robot(hang_balls(load_body(outfit.name), ball))
