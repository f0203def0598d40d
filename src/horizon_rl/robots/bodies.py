"""Bodies by name: real quadrupeds, and what the paper did to its Go2.

The facts are in `presets.toml`. An intervention replaces a few fields of a `Morphology`
and leaves its motors and its twelve joints alone, so a policy meets it unprepared,
through the same interface.
"""

import tomllib
from collections.abc import Callable
from dataclasses import replace
from functools import cache, reduce
from importlib.resources import files
from pathlib import Path
from typing import Any

from horizon_rl.robots.leg import Leg
from horizon_rl.robots.morphology import Morphology, Payload
from horizon_rl.support.errors import InputError, unknown
from horizon_rl.support.records import decode

REFERENCE = "go2"
"""The robot whose motors and ranges every other body's are scaled from."""

DRAWN = ("generated", "mixed")
"""Robots of a run that are many bodies."""

STILT_M = 0.15


def is_mjcf(source: str) -> bool:
    """Tell whether `source` is the path of a file, not the name of a body."""
    return Path(source).suffix.lower() in (".xml", ".mjcf")


def preset_names() -> tuple[str, ...]:
    """Name the robots that `load_preset` knows, the reference first."""
    return tuple(_facts())


@cache
def load_preset(name: str) -> Morphology:
    """Return a real robot's body."""
    if name not in _facts():
        raise InputError(unknown("robot", name, preset_names()))
    return decode(Morphology, {"name": name, **_facts()[name]})


@cache
def _facts() -> dict[str, dict[str, Any]]:
    text = files("horizon_rl.robots").joinpath("presets.toml").read_text("utf-8")
    return tomllib.loads(text)


def lock_knees(body: Morphology, end: str, leg: Leg, scale: float) -> Morphology:
    """Hold both knees at one end, F or R, at `scale` times their default angle."""
    angle = scale * leg.default_pose_rad[2]
    locks = tuple((f"{end}{side}_calf", angle) for side in "LR")
    return replace(body, locked=(*body.locked, *locks))


def add_stilts(body: Morphology, *ends: str) -> Morphology:
    """Lengthen the calves at `ends`, front or rear, by 15 cm."""
    legs = {end: replace(getattr(body, end), stilt_m=STILT_M) for end in ends}
    return replace(body, **legs)


def hang_balls(body: Morphology, *balls: tuple[float, float]) -> Morphology:
    """Hang balls of given masses below the trunk's underside at given x, kg and m.

    Each swings on a 10 cm link.
    """
    box = body.trunk_box
    underside = box.center_m[2] - box.half_extents_m[2]
    places = [(mass, (x, 0.0, underside)) for mass, x in balls]
    added = [Payload(mass_kg=mass, attach_m=place) for mass, place in places]
    return replace(body, payloads=(*body.payloads, *added))


def hang_two_balls(body: Morphology) -> Morphology:
    """Hang 3 kg half way to the front hips and 5 kg half way to the rear ones."""
    front_x, rear_x = body.front.hip_pos_m[0], body.rear.hip_pos_m[0]
    return hang_balls(body, (3.0, front_x / 2.0), (5.0, rear_x / 2.0))


INTERVENTIONS: dict[str, Callable[[Morphology], Morphology]] = {
    # More bent than by default; straighter.
    "front-knees-locked": lambda body: lock_knees(body, "F", body.front, 1.1),
    "hind-knees-locked": lambda body: lock_knees(body, "R", body.rear, 0.9),
    "stilts": lambda body: add_stilts(body, "front", "rear"),
    "hind-stilts": lambda body: add_stilts(body, "rear"),
    # Below the trunk's origin.
    "payload-3kg": lambda body: hang_balls(body, (3.0, 0.0)),
    "payload-5kg": lambda body: hang_balls(body, (5.0, 0.0)),
    "two-payloads": hang_two_balls,
    "stilts-and-payloads": lambda b: hang_two_balls(add_stilts(b, "front", "rear")),
}


def intervene(morphology: Morphology, name: str) -> Morphology:
    """Apply an intervention by name; the result's name says so: `go2+stilts`."""
    if name not in INTERVENTIONS:
        raise InputError(unknown("intervention", name, INTERVENTIONS))
    changed = INTERVENTIONS[name](morphology)
    return replace(changed, name=f"{morphology.name}+{name}")


def load_body(name: str) -> Morphology:
    """Return a preset, with interventions if named: `go2`, `go2+stilts`."""
    preset, *interventions = name.split("+")
    try:
        return reduce(intervene, interventions, load_preset(preset))
    except InputError as error:
        raise InputError(f"{error}; or an MJCF file, *.xml or *.mjcf") from error


def check_robot(source: str) -> None:
    """Refuse the name of a robot that no run can have; whether a file is there is open."""
    if source in DRAWN or is_mjcf(source):
        return
    try:
        load_body(source)
    except InputError as error:
        raise InputError(f"{error}; or {', '.join(DRAWN)}") from error
