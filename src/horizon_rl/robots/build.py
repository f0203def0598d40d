"""Morphology -> MuJoCo model, by `MjSpec`, without meshes.

Bodies that differ only in numbers compile to models of one structure: same counts,
names and order. A batch then holds a thousand bodies in one template whose fields it
overwrites per world. A payload adds joints, so such a robot is a batch of its own.
"""

import math

import mujoco
import numpy as np

from horizon_rl.robots.ground import FLAT, Ground
from horizon_rl.robots.leg import JOINT_KINDS, Leg, Link
from horizon_rl.robots.morphology import JOINT_NAMES, LEG_NAMES, Morphology, Payload
from horizon_rl.robots.robot import Robot
from horizon_rl.robots.scene import (
    TRUNK_SENSOR,
    add_motor,
    add_touch_sensor,
    find_addresses,
    set_options,
)

X, Y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
ALONG_Y = (math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0)

BOX = mujoco.mjtGeom.mjGEOM_BOX
BALL = mujoco.mjtGeom.mjGEOM_SPHERE
CAPSULE = mujoco.mjtGeom.mjGEOM_CAPSULE

SHIN_SHARE = 0.7
"""Of the shank, from the knee down, that touches ground which is no plane. The rest is so
near the foot, which touches first, that it would only cost time: a sixth of a step."""

LOCK_HALF_WIDTH_RAD = 5e-4
LIMIT_MARGIN_RAD = 2e-3

# Robot geoms meet the floor (contype 1) and never one another: a policy gains little
# from touching itself, and every pair would cost time in every world. All that can
# touch the ground has priority 1, so that the robot's friction, not the larger of the
# two, decides.
TOUCHES_GROUND = {"contype": 0, "conaffinity": 1, "priority": 1, "group": 1}
SEEN_ONLY = {"contype": 0, "conaffinity": 0, "group": 2}

DARK = (0.22, 0.24, 0.27, 1.0)
LIGHT = (0.82, 0.84, 0.86, 1.0)
RUBBER = (0.08, 0.08, 0.09, 1.0)
ACCENT = (0.13, 0.43, 0.70, 1.0)
IRON = (0.45, 0.36, 0.32, 1.0)


def build_robot(morphology: Morphology, ground: Ground = FLAT) -> Robot:
    """Compile a body on a ground and say where its joints are."""
    model = build_spec(morphology, ground).compile()
    # Where two frames coincide MuJoCo skips their transform, by flags set at compile
    # time. In a batch one body's flags would hold for all: they are cleared, at no
    # measurable cost.
    never = mujoco.mjtSameFrame.mjSAMEFRAME_NONE
    model.body_sameframe[1:] = never
    model.geom_sameframe[1:] = never
    unknown = (math.nan, math.nan, math.nan)
    return Robot(
        name=morphology.name,
        model=model,
        ground=ground,
        **find_addresses(model, JOINT_NAMES, [f"{leg}_foot" for leg in LEG_NAMES]),
        joint_sign=np.ones(12),
        joint_offset_rad=np.zeros(12),
        trunk_body_id=model.body("trunk").id,
        default_pose_rad=morphology.default_pose_rad,
        # Hip, thigh, calf, for each of the four legs.
        torque_limit_nm=np.tile(morphology.torque_limit_nm, 4),
        velocity_limit_rad_s=np.tile(morphology.velocity_limit_rad_s, 4),
        stiffness_nm_rad=np.tile(morphology.stiffness_nm_rad or unknown, 4),
        damping_nm_s_rad=np.tile(morphology.damping_nm_s_rad or unknown, 4),
        body_mass_kg=morphology.body_mass_kg,
        total_mass_kg=morphology.total_mass_kg,
        thigh_length_m=morphology.thigh_length_m,
        calf_length_m=morphology.calf_length_m,
        standing_height_m=morphology.standing_height_m,
    )


def build_spec(morphology: Morphology, ground: Ground = FLAT) -> mujoco.MjSpec:
    """Describe a body on a ground, standing in keyframe 'stand'."""
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    set_options(spec, ground)
    ground.add_to(spec)
    trunk = spec.worldbody.add_body(name="trunk")
    trunk.add_freejoint(name="root")
    _set_inertial(trunk, morphology.trunk)
    box = morphology.trunk_box
    half, (x, y, z) = box.half_extents_m, box.center_m
    _add_shape(trunk, "trunk", BOX, half, box.center_m, LIGHT, TOUCHES_GROUND)
    # A visor on the front face, so that one sees where the robot looks.
    visor, front = (0.002, 0.8 * half[1], 0.35 * half[2]), z + 0.3 * half[2]
    _add_shape(trunk, "visor", BOX, visor, (x + half[0], y, front), ACCENT, SEEN_ONLY)
    trunk.add_site(name="imu", group=5)
    for name, leg in zip(LEG_NAMES, morphology.legs, strict=True):
        _add_leg(spec, trunk, name, leg, morphology, ground)
    add_touch_sensor(spec, trunk, TRUNK_SENSOR)
    # Last, so that the legs' joints lie where they lie without payload.
    for number, payload in enumerate(morphology.payloads):
        _add_payload(trunk, f"payload{number}", payload)
    stance = morphology.stance
    hanging = (0.0, -stance.pitch_rad) * len(morphology.payloads)
    height = stance.height_m + float(ground.height_at(np.zeros(2)))
    root = (0.0, 0.0, height, *stance.quat)
    spec.add_key(name="stand", qpos=[*root, *morphology.stand_pose_rad, *hanging])
    return spec


def _add_leg(
    spec: mujoco.MjSpec,
    trunk: mujoco.MjsBody,
    name: str,
    leg: Leg,
    morphology: Morphology,
    ground: Ground,
) -> None:
    """Chain hip, thigh and calf to the trunk.

    Foot and thigh touch the ground, the hip is only seen. On a plane so is the shank:
    it is straight and cannot sink in while the knee, where the thigh's capsule ends, and
    the foot do not. Elsewhere its upper part, the shin, meets the edges of stairs.
    """
    spread, length, foot = leg.thigh_offset_m, leg.length_m, leg.foot_radius_m
    places = leg.hip_pos_m, spread, (0.0, 0.0, -leg.thigh_length_m)
    locked = dict(morphology.locked)
    body, bodies = trunk, []
    for index, kind in enumerate(JOINT_KINDS):
        joint = f"{name}_{kind}"
        body = body.add_body(name=joint, pos=places[index])
        bodies.append(body)
        limits = leg.joint_range_rad[index]
        if joint in locked:  # Next to no room: it stays a joint, with its motor.
            middle = locked[joint]
            limits = middle - LOCK_HALF_WIDTH_RAD, middle + LOCK_HALF_WIDTH_RAD
        _set_inertial(body, leg.links[index])
        body.add_joint(
            name=joint,
            axis=X if kind == "hip" else Y,
            range=limits,
            armature=morphology.armature_kg_m2[index],
            # Hard stops. With the margin wider than a locked joint's play both its
            # limits act at all times: it holds to 0.5 mrad under 45 N m and in a fall
            # from 0.6 m, where a limit met only on crossing gives way by 50 mrad.
            solref_limit=(2.0 * spec.option.timestep, 1.0),
            solimp_limit=(0.99, 0.999, 0.001, 0.5, 2.0),
            margin=LIMIT_MARGIN_RAD,
        )
        add_motor(spec, joint, joint)
    hip, thigh, calf = bodies
    width = max(abs(spread[1]) / 2.0, 1e-3)
    middle, size = np.divide(spread, 2.0), (0.08 * length, width, 0.0)
    shape = _add_shape(hip, f"{name}_hip", CAPSULE, size, middle, DARK, SEEN_ONLY)
    shape.quat = ALONG_Y
    _add_rod(
        thigh, f"{name}_thigh", 0.05 * length, leg.thigh_length_m, LIGHT, TOUCHES_GROUND
    )
    end, size = (0.0, 0.0, -leg.shank_length_m), (foot, 0.0, 0.0)
    _add_shape(calf, f"{name}_foot", BALL, size, end, RUBBER, TOUCHES_GROUND)
    _add_rod(calf, f"{name}_shank", 0.7 * foot, leg.shank_length_m, DARK, SEEN_ONLY)
    # One radius for all bodies, wider than any foot: the calf has no other geom that
    # touches the ground.
    add_touch_sensor(spec, calf, f"{name}_foot_touch", end, radius_m=0.1)
    if not ground.is_plane:
        # A body of its own, fixed to the calf: else the foot would feel what it touches.
        # The calf's mass is its mass too.
        shin = calf.add_body(name=f"{name}_shin", explicitinertial=True)
        length = SHIN_SHARE * leg.shank_length_m
        _add_rod(shin, f"{name}_shin", 0.7 * foot, length, DARK, TOUCHES_GROUND)


def _add_payload(trunk: mujoco.MjsBody, name: str, payload: Payload) -> None:
    """Hang a ball on a universal joint: it swings fore, aft and sideways, no spin."""
    length, radius = payload.link_length_m, payload.radius_m
    center = (0.0, 0.0, -length)
    body = trunk.add_body(name=name, pos=payload.attach_m)
    moment = 0.4 * payload.mass_kg * radius**2
    inertia = (moment, moment, moment, 0.0, 0.0, 0.0)
    ball = Link(mass_kg=payload.mass_kg, com_m=center, inertia_kg_m2=inertia)
    _set_inertial(body, ball)
    reach = math.acos(radius / length)  # There the ball meets the belly.
    for axis, direction in (("x", X), ("y", Y)):
        body.add_joint(name=f"{name}_{axis}", axis=direction, range=(-reach, reach))
    size = (radius, 0.0, 0.0)
    _add_shape(body, name, BALL, size, center, IRON, TOUCHES_GROUND)
    _add_rod(body, f"{name}_link", 0.004, length, DARK, SEEN_ONLY)


def _add_shape(
    body: mujoco.MjsBody, name: str, kind, size, pos, rgba, rules: dict[str, int]
) -> mujoco.MjsGeom:
    return body.add_geom(name=name, type=kind, size=size, pos=pos, rgba=rgba, **rules)


def _add_rod(
    body: mujoco.MjsBody, name: str, radius: float, length: float, rgba, rules
) -> None:
    """Add a capsule that hangs from the body's origin."""
    size, pos = (radius, length / 2.0, 0.0), (0.0, 0.0, -length / 2.0)
    _add_shape(body, name, CAPSULE, size, pos, rgba, rules)


def _set_inertial(body: mujoco.MjsBody, link: Link) -> None:
    body.explicitinertial = True
    body.mass = link.mass_kg
    body.ipos = link.com_m
    body.fullinertia = link.inertia_kg_m2
