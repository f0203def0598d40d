"""What the paper did to its Go2, as functions on a body.

An intervention replaces a few fields of a `Morphology` and leaves its motors and its
twelve joints alone, so a policy meets it unprepared, through the same interface.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

from horizon_rl.robots.leg import Leg
from horizon_rl.robots.morphology import Morphology, Payload
from horizon_rl.robots.presets import load_preset
from horizon_rl.support.errors import InputError, unknown

STILT_M = 0.15
LIGHT_BALL_KG = 3.0
HEAVY_BALL_KG = 5.0


def lock_front_knees(morphology: Morphology) -> Morphology:
    """Hold the front knees at 1.1 x their default angle: more bent."""
    return _lock_knees(morphology, "F", morphology.front, 1.1)


def lock_hind_knees(morphology: Morphology) -> Morphology:
    """Hold the hind knees at 0.9 x their default angle: straighter."""
    return _lock_knees(morphology, "R", morphology.rear, 0.9)


def add_stilts(morphology: Morphology) -> Morphology:
    """Lengthen all four calves by 15 cm."""
    longer_front = replace(morphology.front, stilt_m=STILT_M)
    return replace(add_hind_stilts(morphology), front=longer_front)


def add_hind_stilts(morphology: Morphology) -> Morphology:
    """Lengthen the hind calves by 15 cm."""
    return replace(morphology, rear=replace(morphology.rear, stilt_m=STILT_M))


def hang_light_ball(morphology: Morphology) -> Morphology:
    """Hang a 3 kg ball below the trunk's origin, on a 10 cm link."""
    return hang_balls(morphology, (LIGHT_BALL_KG, 0.0))


def hang_heavy_ball(morphology: Morphology) -> Morphology:
    """Hang a 5 kg ball below the trunk's origin, on a 10 cm link."""
    return hang_balls(morphology, (HEAVY_BALL_KG, 0.0))


def hang_both_balls(morphology: Morphology) -> Morphology:
    """Hang the 3 kg ball half way to the front hips, the 5 kg ball half way back."""
    front_x, rear_x = morphology.front.hip_pos_m[0], morphology.rear.hip_pos_m[0]
    return hang_balls(
        morphology, (LIGHT_BALL_KG, front_x / 2.0), (HEAVY_BALL_KG, rear_x / 2.0)
    )


def add_stilts_and_balls(morphology: Morphology) -> Morphology:
    """Lengthen all four calves and hang both balls."""
    return hang_both_balls(add_stilts(morphology))


INTERVENTIONS: dict[str, Callable[[Morphology], Morphology]] = {
    "front-knees-locked": lock_front_knees,
    "hind-knees-locked": lock_hind_knees,
    "stilts": add_stilts,
    "hind-stilts": add_hind_stilts,
    "payload-3kg": hang_light_ball,
    "payload-5kg": hang_heavy_ball,
    "two-payloads": hang_both_balls,
    "stilts-and-payloads": add_stilts_and_balls,
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
    return reduce(intervene, interventions, load_preset(preset))


def hang_balls(morphology: Morphology, *balls: tuple[float, float]) -> Morphology:
    """Hang balls of the given masses below the trunk's underside at the given x."""
    box = morphology.trunk_box
    underside = box.center_m[2] - box.half_extents_m[2]
    added = tuple(
        Payload(mass_kg=mass, attach_m=(x, 0.0, underside)) for mass, x in balls
    )
    return replace(morphology, payloads=(*morphology.payloads, *added))


def _lock_knees(morphology: Morphology, end: str, leg: Leg, scale: float) -> Morphology:
    angle = scale * leg.default_pose_rad[2]
    locks = tuple((f"{end}{side}_calf", angle) for side in "LR")
    return replace(morphology, locked=(*morphology.locked, *locks))
