"""The body of a session: a robot, the interventions on it, and what it carries."""

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
from horizon_rl.robots.bodies import hang_balls
from horizon_rl.support.errors import InputError


@dataclass(frozen=True, kw_only=True)
class BodyVariant:
    """A body by name, and changes to it that a user makes by hand."""

    robot: str
    """Preset, or MJCF file by its path."""
    interventions: tuple[str, ...] = ()
    """Of `INTERVENTIONS`, in that order."""
    payload_kg: float = 0.0
    """Mass of a ball that hangs below the trunk; 0: none."""
    payload_x_m: float = 0.0
    """How far in front of the trunk's origin it hangs."""

    @property
    def can_change(self) -> bool:
        """Whether interventions apply: to the bodies built here, not to a file's."""
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

    def with_intervention(self, name: str, present: bool) -> "BodyVariant":
        """Add or take away an intervention."""
        chosen = {*self.interventions} - {name} | ({name} if present else set())
        order = tuple(key for key in INTERVENTIONS if key in chosen)
        return replace(self, interventions=order)


def parse_body(name: str) -> BodyVariant:
    """Read a preset with interventions (go2+stilts), or the path of an MJCF file."""
    load_robot(name)  # Refuses what is none of these.
    robot, *interventions = name.split("+")
    if robot in preset_names():
        return BodyVariant(robot=robot, interventions=tuple(interventions))
    return BodyVariant(robot=name)


@lru_cache(maxsize=32)  # A slider makes many.
def _build_loaded(body: BodyVariant) -> Robot:
    if not body.can_change:
        raise InputError(f"{body.robot}: a payload hangs below presets only")
    ball = body.payload_kg, body.payload_x_m
    return build_robot(hang_balls(load_body(body.name), ball))
