"""Robots by name, and import of a quadruped from someone else's MJCF file.

An imported robot keeps its geometry, inertia, rotor inertia and dry friction. What changes:
its actuators become torque motors in canonical order and direction; its joint damping
and springs go with them, since the controller supplies both, and so does what else moves
it (`MOVERS`); its keyframes and sensors make way for ours; gravity, air, solver, time
step and contact rules are those of robots built here; of what is around it a level floor
stays, and one is laid where there is none.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from horizon_rl.robots.bodies import is_mjcf, load_body
from horizon_rl.robots.build import build_robot
from horizon_rl.robots.declared_sizes import check_declared_sizes, check_images
from horizon_rl.robots.default_pose import Joints, choose_pose
from horizon_rl.robots.ground import FLAT, Ground, free_name
from horizon_rl.robots.joint_map import (
    find_feet,
    find_joints,
    geom_kind,
    joints_file,
    measure_legs,
    read_joints,
)
from horizon_rl.robots.morphology import JOINT_NAMES, LEG_NAMES
from horizon_rl.robots.robot import Robot, canonical_ranges
from horizon_rl.robots.scene import (
    FOOT_SENSORS,
    TRUNK_SENSOR,
    add_motor,
    add_touch_sensor,
    find_addresses,
    set_options,
    silence_engine,
)
from horizon_rl.robots.standing import find_stance
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import inside

PLANE = mujoco.mjtGeom.mjGEOM_PLANE
REFUSALS = (ValueError, RuntimeError, MemoryError, mujoco.FatalError)
"""What MuJoCo raises; a RuntimeError where memory runs out while it reads."""

MOVERS = {
    "jnt_stiffness": "joint springs up to {:g} N m/rad",
    "jnt_stiffnesspoly": "polynomial joint springs up to {:g}",
    "body_gravcomp": "gravity compensation up to {:g}",
    "geom_adhesion": "adhesion up to {:g} N",
    "geom_surfacevel": "surface velocities up to {:g}",
}
"""Fields that move a robot in its file and are left out here, and what is said of them."""


def load_robot(source: str, ground: Ground = FLAT) -> Robot:
    """Load a preset, an intervention (go2+stilts), or an MJCF file by its path.

    The same source gives the same object as long as its file does not change.
    """
    if not is_mjcf(source):
        return _build_named(source, ground)
    path = Path(source)
    files = path, joints_file(path)
    changed_ns = tuple(f.stat().st_mtime_ns if f.exists() else 0 for f in files)
    # The working folder may change too: the same path then means another file.
    return _import_file(path, path.resolve(), changed_ns, ground)


@cache
def _build_named(name: str, ground: Ground) -> Robot:
    return build_robot(load_body(name), ground)


@cache
def _import_file(
    path: Path, place: Path, changed_ns: tuple[int, ...], ground: Ground
) -> Robot:
    return load_mjcf(path, ground=ground)


def load_mjcf(
    path: Path | str,
    *,
    joints: Mapping[str, str] | Path | str | None = None,
    feet: Mapping[str, str] | None = None,
    default_pose_rad: Sequence[float] | np.ndarray | None = None,
    ground: Ground = FLAT,
) -> Robot:
    """Import a quadruped with twelve hinge joints on a floating base.

    Args:
        path: the MJCF file.
        joints: the file's joint for each canonical name, or a JSON file that says so;
            if not given, NAME.joints.json beside NAME.xml, or by name rules.
        feet: the file's foot geom for each of FL FR RL RR; searched if not given.
        default_pose_rad: twelve canonical angles; if not given, those of the keyframe
            'stand', 'home' or another in which the robot stands; if there is none, feet
            below the hips, knees half bent.
        ground: what it stands on, in the place of the file's own plane.
    """
    with inside(str(path)):
        path = Path(path)
        if not path.is_file():
            what = "a directory" if path.is_dir() else "no such file"
            raise InputError(f"{what}; needs an MJCF file")
        silence_engine()
        check_declared_sizes(path)
        spec = _load(mujoco.MjSpec.from_file, str(path))
        check_images(spec, path.parent)
        source = _load(spec.compile)
        _load(source.names.decode, "utf-8")  # MuJoCo takes any bytes for a name.
        if joints is None and joints_file(path).is_file():
            joints = joints_file(path)
        if isinstance(joints, Path | str):
            joints = read_joints(Path(joints))
        joint_ids = find_joints(source, joints)
        foot_ids = find_feet(source, joint_ids, feet)
        sign, offset_rad, *lengths_m = measure_legs(source, joint_ids, foot_ids)
        joint_names = [source.joint(i).name for i in joint_ids]
        torque, stiffness, damping = _motor_facts(source, joint_ids)
        root = int(source.body_rootid[source.jnt_bodyid[joint_ids[0]]])

        foot_names, left_out = _adapt(spec, source, root, foot_ids, ground)
        for motor, joint, direction in zip(JOINT_NAMES, joint_names, sign, strict=True):
            add_motor(spec, motor, joint, direction)
        model = _load(spec.compile)
        limits, limited = source.jnt_range[joint_ids], source.jnt_limited[joint_ids]
        ranges = canonical_ranges(limits, limited, sign, offset_rad)
        found = Joints(joint_ids, sign, offset_rad, *ranges)
        foot_geoms = [model.geom(name).id for name in foot_names]
        pose, found, pose_source = choose_pose(
            source, found, model, foot_geoms, lengths_m, default_pose_rad
        )
        qpos = found.write(pose, model)
        stance = find_stance(model, qpos, foot_geoms)
        # After legs and pose, of which those above say more.
        _check_finite(source)
        if ground != FLAT:
            for plane in [geom for geom in spec.geoms if geom.type == PLANE]:
                spec.delete(plane)
            ground.add_to(spec)
        height = stance.height_m + float(ground.height_at(np.zeros(2)))
        qpos[:7] = (0.0, 0.0, height, *stance.quat)
        spec.add_key(name="stand", qpos=qpos)
        model = _load(spec.compile)

        mass = float(source.body_subtreemass[root])
        # What MuJoCo calls a model without a name.
        unnamed = spec.modelname in ("", "MuJoCo Model")
        return Robot(
            name=path.stem if unnamed else spec.modelname,
            model=model,
            ground=ground,
            **find_addresses(model, joint_names, foot_names),
            joint_sign=sign,
            joint_offset_rad=found.offset_rad,
            trunk_body_id=root,
            default_pose_rad=pose,
            pose_source=pose_source,
            left_out=tuple(left_out),
            torque_limit_nm=torque,
            velocity_limit_rad_s=np.full(12, math.nan),
            stiffness_nm_rad=stiffness,
            damping_nm_s_rad=damping,
            body_mass_kg=mass,
            total_mass_kg=mass,
            thigh_length_m=lengths_m[0],
            calf_length_m=lengths_m[1],
            standing_height_m=stance.height_m,
        )


def _load(make: Callable[..., Any], *args: str) -> Any:
    """Let MuJoCo make something of the file; what it refuses is the file's fault."""
    try:
        return make(*args)
    except REFUSALS as error:
        reason = " ".join(str(error).split()) or "not enough memory"
        raise InputError(f"MuJoCo cannot load it: {reason}") from error


def _check_finite(model: mujoco.MjModel) -> None:
    """Refuse NaN and infinity: MuJoCo takes them, and only warns of some.

    An infinite range is none, as files write it.
    """
    for part in (model, model.opt, model.stat):
        for name in dir(part):
            value = getattr(part, name)
            if not isinstance(value, float | np.ndarray):
                continue
            wrong = np.isnan(value) if name.endswith("range") else ~np.isfinite(value)
            if wrong.any():
                found = np.asarray(value)[wrong].flat[0]
                raise InputError(f"{name} is {found}; accepted: finite numbers only")


def _motor_facts(
    model: mujoco.MjModel, joint_ids: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read torque limits, stiffness and damping of the motors; NaN where unknown."""
    facts = np.full((3, 12), math.nan)
    on_joint = model.actuator_trntype == mujoco.mjtTrn.mjTRN_JOINT
    for i, joint in enumerate(joint_ids):
        if model.jnt_actfrclimited[joint]:
            facts[0, i] = np.abs(model.jnt_actfrcrange[joint]).max()
        motors = np.flatnonzero(on_joint & (model.actuator_trnid[:, 0] == joint))
        if len(motors) != 1:
            continue
        motor = motors[0]
        gear = abs(model.actuator_gear[motor, 0])
        gain = model.actuator_gainprm[motor, 0]
        _, position_bias, velocity_bias = model.actuator_biasprm[motor, :3]
        if model.actuator_forcelimited[motor]:
            facts[0, i] = gear * np.abs(model.actuator_forcerange[motor]).max()
        elif model.actuator_ctrllimited[motor] and position_bias == 0.0:
            facts[0, i] = gear * gain * np.abs(model.actuator_ctrlrange[motor]).max()
        if position_bias < 0.0:
            passive = model.dof_damping[model.jnt_dofadr[joint]]
            facts[1, i] = -position_bias * gear**2
            facts[2, i] = -velocity_bias * gear**2 + passive
    facts[~np.isfinite(facts)] = math.nan
    return facts[0], facts[1], facts[2]


def _check_ties(spec: mujoco.MjSpec, source: mujoco.MjModel) -> None:
    """Refuse equalities and tendons that act on the robot."""
    ties = []
    for tie in spec.equalities:
        if tie.active:
            kind = tie.type.name.removeprefix("mjEQ_").lower()
            between = f"{kind} of '{tie.name1}' and '{tie.name2}'"
            ties.append(f"equality '{tie.name}' ({between})")
    for tendon in spec.tendons:
        names = "stiffness", "damping", "frictionloss", "armature"
        acting = [name for name in names if np.any(getattr(tendon, name))]
        if acting or source.tendon_limited[tendon.id]:
            ties.append(f"tendon '{tendon.name}' ({', '.join(acting) or 'limited'})")
    if ties:
        raise InputError(
            f"{ties[0]} ties the robot, whose trunk and joints must move freely: take it "
            "out"
        )


def _check_floors(source: mujoco.MjModel, floors: np.ndarray) -> None:
    """Refuse floors other than one level plane at z = 0."""
    data = mujoco.MjData(source)
    mujoco.mj_kinematics(source, data)
    up, height = data.geom_xmat[floors, 2::3], data.geom_xpos[floors, 2]
    if (
        len(floors) > 1
        or not np.allclose(up, (0.0, 0.0, 1.0))
        or not np.allclose(height, 0.0)
    ):
        raise InputError(
            f"needs one ground plane, level and at z = 0, found {len(floors)} planes, at "
            f"z = {height.round(3).tolist()}, their normals {up.round(3).tolist()}"
        )


def _find_left_out(source: mujoco.MjModel, obstacles: np.ndarray) -> list[str]:
    """Say what moves the robot in its file and will not here."""
    found, usual = [], mujoco.MjOption()
    for name in ("gravity", "wind", "density", "viscosity"):
        value = np.atleast_1d(getattr(source.opt, name))
        if np.any(value != getattr(usual, name)):
            found.append(f"{name} {' '.join(f'{x:g}' for x in value)}")
    for name, words in MOVERS.items():
        if (value := getattr(source, name)).any():
            found.append(words.format(np.abs(value).max()))
    if kinds := Counter(geom_kind(source, i) for i in obstacles.tolist()):
        listed = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
        found.append(f"solid geoms around it: {listed}")
    return found


def _adapt(
    spec: mujoco.MjSpec,
    source: mujoco.MjModel,
    root: int,
    foot_ids: np.ndarray,
    ground: Ground,
) -> tuple[list[str], list[str]]:
    """Make the file's scene obey our rules, or refuse it.

    Returns:
        The names of the foot geoms, and in words what was left out.
    """
    _check_ties(spec, source)
    solid = (source.geom_contype | source.geom_conaffinity) != 0
    around = source.body_rootid[source.geom_bodyid] != root
    is_plane = source.geom_type == PLANE
    floors = np.flatnonzero(solid & is_plane)
    _check_floors(source, floors)
    left_out = _find_left_out(source, np.flatnonzero(around & solid & ~is_plane))
    set_options(spec, ground)
    # A file that was written from a robot built here has our sites already.
    ours = [x for x in spec.sites if x.name in (*FOOT_SENSORS, TRUNK_SENSOR)]
    for element in [*spec.actuators, *spec.keys, *spec.sensors, *spec.pairs, *ours]:
        spec.delete(element)
    for joint in spec.joints:
        joint.damping = np.zeros_like(joint.damping)
        joint.stiffness = np.zeros_like(joint.stiffness)
        joint.actfrclimited = mujoco.mjtLimited.mjLIMITED_FALSE
    for body in spec.bodies:
        body.gravcomp = 0.0
    geoms = {geom.id: geom for geom in spec.geoms}
    bodies = {body.id: body for body in spec.bodies}
    for i, geom in geoms.items():
        geom.adhesion, geom.surfacevel = 0.0, np.zeros(6)
        if solid[i]:
            geom.contype, geom.conaffinity = (1, 0) if around[i] else (0, 1)
            geom.priority = 0 if around[i] else 1
        if geom.name == "floor" and not around[i]:
            geom.name = free_name(spec.geoms, "floor")  # The ground is called that.
    for leg, sensor, i in zip(LEG_NAMES, FOOT_SENSORS, foot_ids, strict=True):
        geoms[i].name = geoms[i].name or free_name(spec.geoms, f"{leg}_foot_geom")
        radius = 1.1 * source.geom_rbound[i]
        add_touch_sensor(spec, geoms[i].parent, sensor, source.geom_pos[i], radius)
    add_touch_sensor(spec, bodies[root], TRUNK_SENSOR)
    names = [geoms[i].name for i in foot_ids]
    scene = [geoms[i] for i in {*np.flatnonzero(around)} - {*floors}]
    # The first height field must be the ground's.
    for element in [*scene, *spec.hfields]:
        spec.delete(element)
    if not len(floors):
        FLAT.add_to(spec)
    return names, left_out
