"""Random bodies around and between the presets.

Two presets, brought to one metre of leg and one kilogram, are blended; the blend is
given a size of its own and its parts are stretched and weighed one by one. Blending
and stretching act on second moments of mass, which stay positive under both, so every
inertia is one that a rigid body can have.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from horizon_rl.robots.bodies import REFERENCE, load_preset, preset_names
from horizon_rl.robots.leg import Interval, Leg, Link, Vec3, floats
from horizon_rl.robots.morphology import Box, Morphology
from horizon_rl.support.errors import InputError

MAX_TRIES = 100


@dataclass(frozen=True, kw_only=True)
class GeneratorCfg:
    """How far generated bodies may differ from a blend of two presets."""

    size: Interval = (0.85, 1.15)
    """Factor on leg length; mass follows by its power 2.5, as among the presets."""
    density: Interval = (0.85, 1.2)
    """Factor on the mass of a robot of that size."""
    proportion: Interval = (0.85, 1.15)
    """Factors on trunk length, width, height, hip spread, thigh, calf, thickness."""
    mass_share: Interval = (0.8, 1.25)
    """Factors on the masses of trunk, hips, thighs and calves."""
    com_shift: Interval = (-0.05, 0.05)
    """Shift of the trunk's centre of mass, in leg lengths, fore-aft and up."""
    pose_shift_rad: Interval = (-0.1, 0.1)
    """Shift of each default angle, within its range."""


def generate(
    rng: np.random.Generator, n: int, cfg: GeneratorCfg | None = None
) -> list[Morphology]:
    """Draw n bodies that stand. The first k of n are those that a draw of k gives."""
    cfg = cfg or GeneratorCfg()
    return [_draw_standing(rng, f"generated-{number}", cfg) for number in range(n)]


def can_stand(morphology: Morphology) -> bool:
    """Tell whether the default pose is a stance: level, off the ground and stable."""
    leg_length, height = morphology.leg_length_m, morphology.standing_height_m
    box, pair = morphology.trunk_box, (morphology.front, morphology.rear)
    belly = box.center_m[2] - box.half_extents_m[2]
    knees = [leg.frames(leg.default_pose_rad)[2][0][2] for leg in pair]
    return (
        abs(morphology.stance.pitch_rad) < 0.15
        and height + min(belly, *knees) > 0.2 * leg_length
        and morphology.support_margin_m > 0.1 * leg_length
    )


def _draw_standing(
    rng: np.random.Generator, name: str, cfg: GeneratorCfg
) -> Morphology:
    for _ in range(MAX_TRIES):
        morphology = _draw(rng, name, cfg)
        if can_stand(morphology):
            return morphology
    raise InputError(f"none of {MAX_TRIES} bodies could stand; try a narrower {cfg}")


def _draw(rng: np.random.Generator, name: str, cfg: GeneratorCfg) -> Morphology:
    names = preset_names()
    first, second = (names[i] for i in rng.integers(len(names), size=2))
    one, other, weight = load_preset(first), load_preset(second), rng.uniform()
    size = rng.uniform(*cfg.size)
    length_m = size * _log_blend(one.leg_length_m, other.leg_length_m, weight)
    density = rng.uniform(*cfg.density) * size**2.5
    mass_kg = density * _log_blend(one.body_mass_kg, other.body_mass_kg, weight)

    body = _blend(_unit(first), _unit(second), weight)
    sizes = length_m * rng.uniform(*cfg.proportion, size=7)
    body = _reshaped(body, sizes, mass_kg * rng.uniform(*cfg.mass_share, size=4))
    shift_x, shift_z = length_m * rng.uniform(*cfg.com_shift, size=2)
    com = floats(np.add(body.trunk.com_m, (shift_x, 0.0, shift_z)))
    rear = _reposed(body.rear, rng.uniform(*cfg.pose_shift_rad, size=3))
    body = replace(
        body,
        name=name,
        title=f"between {one.title} and {other.title}",
        trunk=replace(body.trunk, com_m=com),
        front=_reposed(body.front, rng.uniform(*cfg.pose_shift_rad, size=3)),
        rear=rear.reversed() if _knee_points_forward(one.rear) else rear,
    )
    return _with_scaled_motors(body)


@cache
def _unit(name: str) -> Morphology:
    """Return a preset with 1 m of leg, 1 kg of mass and all knees pointing back."""
    preset = load_preset(name)
    front, rear = preset.front, preset.rear
    rear = rear.reversed() if _knee_points_forward(rear) else rear
    bare = replace(
        preset,
        front=_turn_limited(front),
        rear=_turn_limited(rear),
        stiffness_nm_rad=None,
        damping_nm_s_rad=None,
        sources=(),
        licence="",
        estimated=(),
    )
    scale, mass = 1.0 / preset.leg_length_m, 1.0 / preset.body_mass_kg
    return _reshaped(bare, [scale] * 7, [mass] * 4)


def _reshaped(
    body: Morphology, sizes: Iterable[float], masses: Iterable[float]
) -> Morphology:
    """Stretch and weigh each part of a body.

    Args:
        body: What to reshape.
        sizes: Factors on trunk length, width, height, hip spread, thigh, calf,
            thickness.
        masses: Factors on the masses of trunk, hips, thighs and calves.
    """
    x, y, z, spread, thigh, calf, thick = sizes
    trunk = x, y, z
    trunk_mass, hip_mass, thigh_mass, calf_mass = masses

    def leg(old: Leg) -> Leg:
        return replace(
            old,
            hip_pos_m=_scaled(old.hip_pos_m, trunk),
            thigh_offset_m=_scaled(old.thigh_offset_m, spread),
            thigh_length_m=old.thigh_length_m * thigh,
            calf_length_m=old.calf_length_m * calf,
            foot_radius_m=old.foot_radius_m * thick,
            hip=_stretched(old.hip, hip_mass, (thick, spread, thick)),
            thigh=_stretched(old.thigh, thigh_mass, (thick, thick, thigh)),
            calf=_stretched(old.calf, calf_mass, (thick, thick, calf)),
        )

    return replace(
        body,
        trunk=_stretched(body.trunk, trunk_mass, trunk),
        trunk_box=Box(
            half_extents_m=_scaled(body.trunk_box.half_extents_m, trunk),
            center_m=_scaled(body.trunk_box.center_m, trunk),
        ),
        front=leg(body.front),
        rear=leg(body.rear),
    )


def _with_scaled_motors(body: Morphology) -> Morphology:
    """Give a body the reference's motors, scaled so that they feel as strong.

    Torques go with m L, rates with L^-0.5, hence damping with m L^1.5 and rotor inertia
    with m L^2.
    """
    reference = load_preset(REFERENCE)
    mass = body.body_mass_kg / reference.body_mass_kg
    length = body.leg_length_m / reference.leg_length_m
    torque, rate = mass * length, length**-0.5

    return replace(
        body,
        torque_limit_nm=_scaled(reference.torque_limit_nm, torque),
        velocity_limit_rad_s=_scaled(reference.velocity_limit_rad_s, rate),
        stiffness_nm_rad=_scaled(reference.stiffness_nm_rad, torque),
        damping_nm_s_rad=_scaled(reference.damping_nm_s_rad, torque / rate),
        armature_kg_m2=_scaled(reference.armature_kg_m2, torque / rate**2),
    )


def _blend(one: Any, other: Any, weight: float) -> Any:
    """Interpolate all numbers of two values of one structure."""
    if is_dataclass(one) and not isinstance(one, type):
        names = [field.name for field in fields(one)]
        pairs = {n: (getattr(one, n), getattr(other, n)) for n in names}
        return replace(one, **{n: _blend(*p, weight) for n, p in pairs.items()})
    if isinstance(one, tuple):
        return tuple(_blend(a, b, weight) for a, b in zip(one, other, strict=True))
    if isinstance(one, float):
        return (1.0 - weight) * one + weight * other
    return one


def _log_blend(one: float, other: float, weight: float) -> float:
    return one ** (1.0 - weight) * other**weight


def _stretched(link: Link, mass: float, stretch: Vec3) -> Link:
    moment = mass * link.second_moment_kg_m2 * np.outer(stretch, stretch)
    com = _scaled(link.com_m, stretch)
    return Link.from_second_moment(mass * link.mass_kg, com, moment)


def _reposed(leg: Leg, shift_rad: np.ndarray) -> Leg:
    shifted = np.add(leg.default_pose_rad, shift_rad)
    pose = np.clip(shifted, *np.transpose(leg.joint_range_rad))
    return replace(leg, default_pose_rad=floats(pose))


def _turn_limited(leg: Leg) -> Leg:
    """Cut ranges of several turns, as ANYmal's, to half a turn each way."""
    ranges = np.clip(leg.joint_range_rad, -math.pi, math.pi)
    return replace(leg, joint_range_rad=tuple(map(floats, ranges)))


def _knee_points_forward(leg: Leg) -> bool:
    return leg.default_pose_rad[2] > 0.0


def _scaled(vector: Any, factors: Any) -> Vec3:
    return floats(np.multiply(vector, factors))
