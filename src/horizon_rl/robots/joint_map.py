"""Find the canonical joints and feet in a quadruped model that someone else wrote."""

import re
from collections.abc import Mapping
from pathlib import Path

import mujoco
import numpy as np

from horizon_rl.robots.leg import JOINT_KINDS
from horizon_rl.robots.morphology import JOINT_NAMES, LEG_NAMES
from horizon_rl.support.errors import InputError, blame, unknown
from horizon_rl.support.reading import read_text
from horizon_rl.support.records import decode_value, loads

LEG_TOKENS = {
    "FL": {"fl", "lf"},
    "FR": {"fr", "rf"},
    "RL": {"rl", "lr", "hl", "lh", "bl", "lb"},
    "RR": {"rr", "hr", "rh", "br", "rb"},
}
INITIALS = {"front": "f", "fore": "f", "rear": "r", "hind": "r", "back": "r"}
INITIALS |= {"left": "l", "right": "r"}
NAME_RULE = (
    "a joint's name must hold its leg: FL FR RL RR, LF RF LH RH, HL HR, or words as in "
    "front_left; or give an explicit map, mine.joints.json beside mine.xml, of "
    + ", ".join(JOINT_NAMES)
)
AXIS_TOLERANCE = 0.99
FOOT_SHARE = 0.25
"""Radius of an unnamed foot of any shape, at most, over its distance from the knee: the
centre of a longer one is no measure of the calf."""


def leg_of(name: str) -> str | None:
    """Read the leg from a joint's name.

    >>> leg_of("LH_KFE"), leg_of("abduction_front_left"), leg_of("wheel")
    ('RL', 'FL', None)
    """
    tokens = re.split(r"[^a-z0-9]+", name.lower())
    tokens.append("".join(INITIALS.get(token, "") for token in tokens))
    return next((leg for leg, known in LEG_TOKENS.items() if known & set(tokens)), None)


def joints_file(path: Path) -> Path:
    """Return where an MJCF file's map of joints lies, if it has one: beside it."""
    return path.with_suffix(".joints.json")


def read_joints(path: Path) -> dict[str, str]:
    """Read a map from canonical joints to a file's."""
    with blame(f'{path}: needs a JSON object such as {{"FL_hip": "..."}}'):
        return decode_value(dict[str, str], loads(read_text(path)))


def find_joints(
    model: mujoco.MjModel, names: Mapping[str, str] | None = None
) -> np.ndarray:
    """Return the twelve joints in canonical order, by explicit map or by name rules."""
    hinges = np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_HINGE).tolist()
    found = {model.joint(i).name: i for i in hinges}
    num_free = np.count_nonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE)
    if num_free != 1 or len(found) != 12 or model.njnt != 13:
        raise InputError(
            "needs one floating base (a freejoint) and 12 named hinge joints, found "
            f"{num_free} freejoints and {len(hinges)} hinges of {model.njnt} joints: "
            f"{', '.join(found) or 'none'}"
        )
    [free] = np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE)
    base = model.jnt_bodyid[free]
    root = model.body_rootid[model.jnt_bodyid]
    if fixed := [name for name, i in found.items() if root[i] != base]:
        raise InputError(
            f"the freejoint moves '{model.body(base).name}', which does not carry joint "
            f"{fixed[0]}: it must be the trunk's"
        )
    if names is None:
        # MuJoCo numbers joints from the trunk outward: hip, thigh, calf, whatever the
        # file calls them.
        legs = {
            leg: [name for name in found if leg_of(name) == leg] for leg in LEG_NAMES
        }
        names = {
            f"{leg}_{kind}": name
            for leg, joints in legs.items()
            for kind, name in zip(JOINT_KINDS, joints, strict=False)
        }
    if set(names) != set(JOINT_NAMES) or sorted(names.values()) != sorted(found):
        raise InputError(
            "needs one joint of the file for each canonical joint; the file has "
            f"{', '.join(found)}; mapped are "
            f"{', '.join(f'{k} = {v}' for k, v in names.items()) or 'none'}; {NAME_RULE}"
        )
    return np.array([found[names[name]] for name in JOINT_NAMES])


def find_feet(
    model: mujoco.MjModel, joint_ids: np.ndarray, names: Mapping[str, str] | None = None
) -> np.ndarray:
    """Return each leg's foot geom: as mapped, as named, or what is farthest out.

    That is a sphere, or else what is small against its distance from the knee.
    """
    names = names or {}
    if unmapped := set(names) - set(LEG_NAMES):
        raise InputError(unknown("leg", min(unmapped), LEG_NAMES))
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    solid = np.flatnonzero(model.geom_contype | model.geom_conaffinity).tolist()
    found = []
    for leg, calf in zip(LEG_NAMES, joint_ids[2::3], strict=True):
        body = model.jnt_bodyid[calf]
        below = [i for i in solid if _is_below(model, model.geom_bodyid[i], body)]
        knee = data.xanchor[calf]
        reach = {i: np.linalg.norm(data.geom_xpos[i] - knee) for i in below}
        if leg in names:
            feet = [i for i in below if model.geom(i).name == names[leg]]
        else:
            sphere = mujoco.mjtGeom.mjGEOM_SPHERE
            feet = [i for i in below if _is_called_foot(model, i, body)]
            feet = feet or [i for i in below if model.geom_type[i] == sphere]
            feet = feet or [
                i for i in below if model.geom_rbound[i] < FOOT_SHARE * reach[i]
            ]
        if not feet:
            rule = "a sphere, a name with 'foot' or 'toe' in it, or a small geom at the end"
            needed = names.get(leg, rule)
            listed = ", ".join(describe_geom(model, i) for i in below) or "none"
            raise InputError(
                f"leg {leg} has no foot: needs, below the knee and able to collide, "
                f"{needed}; found {listed}"
            )
        found.append(max(feet, key=reach.__getitem__))
    return np.array(found)


def measure_legs(
    model: mujoco.MjModel, joint_ids: np.ndarray, foot_geom_ids: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Measure the legs by the geometry at the reference pose, trunk level.

    Returns:
        sign, offset_rad: [12] canonical angle = sign * qpos + offset.
        thigh_length_m, calf_length_m: means of the four legs.
    """
    data = mujoco.MjData(model)
    data.qpos[:7] = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    mujoco.mj_kinematics(model, data)
    axes = data.xaxis[joint_ids]
    along = np.where(np.arange(12) % 3 == 0, axes[:, 0], axes[:, 1])
    anchors = data.xanchor[joint_ids].reshape(4, 3, 3)
    _check_legs(model, joint_ids, axes, along, anchors[:, 0])
    sign = np.sign(along)
    thigh = anchors[:, 2] - anchors[:, 1]
    calf = data.geom_xpos[foot_geom_ids] - anchors[:, 2]
    thigh_angle, shank_angle = _swing(thigh), _swing(calf)
    angle = np.stack([np.zeros(4), thigh_angle, shank_angle - thigh_angle], axis=1)
    wrapped = np.remainder(angle + np.pi, 2.0 * np.pi) - np.pi
    reference = model.qpos0[model.jnt_qposadr[joint_ids]]
    thigh_length_m, calf_length_m = (
        float(np.hypot(link[:, 0], link[:, 2]).mean()) for link in (thigh, calf)
    )
    return sign, wrapped.ravel() - sign * reference, thigh_length_m, calf_length_m


def _check_legs(
    model: mujoco.MjModel,
    joint_ids: np.ndarray,
    axes: np.ndarray,
    along: np.ndarray,
    hips: np.ndarray,
) -> None:
    """Refuse legs that are not chained, turned and placed as the canonical ones."""
    chains = joint_ids.reshape(4, 3)
    bodies = model.jnt_bodyid[chains]
    # Several joints may move one body: then their numbers tell the order.
    chained = np.all(np.diff(chains) > 0) and all(
        _is_below(model, body[i + 1], body[i]) for body in bodies for i in (0, 1)
    )
    ahead = hips[:2, 0].min() > hips[2:, 0].max()
    apart = hips[::2, 1].min() > hips[1::2, 1].max()
    if not chained:
        rule = "each calf must come below its thigh, and each thigh below its hip"
    elif np.any(np.abs(along) < AXIS_TOLERANCE):
        rule = "each leg must turn about x at the hip and about y at thigh and calf"
    elif not (ahead and apart):
        rule = (
            "front hips must lie at larger x than rear ones, left hips at larger y "
            "than right ones"
        )
    else:
        return
    found = [
        f"{model.joint(joint).name} as {name} about {axis.round(2).tolist()}"
        for joint, name, axis in zip(joint_ids, JOINT_NAMES, axes, strict=True)
    ]
    raise InputError(
        f"{rule}, in a trunk that faces +x; found {', '.join(found)}, hips at x, y "
        f"{hips[:, :2].round(3).tolist()}"
    )


def _swing(vectors: np.ndarray) -> np.ndarray:
    """Return the angle about y that swings straight down to each vector."""
    return np.arctan2(-vectors[:, 0], -vectors[:, 2])


def _is_below(model: mujoco.MjModel, body: int, ancestor: int) -> bool:
    while body > ancestor:
        body = model.body_parentid[body]
    return body == ancestor


def _is_called_foot(model: mujoco.MjModel, geom: int, calf_body: int) -> bool:
    body = model.geom_bodyid[geom]
    name = model.geom(geom).name + ("" if body == calf_body else model.body(body).name)
    return any(word in name.lower() for word in ("foot", "toe"))


def describe_geom(model: mujoco.MjModel, geom: int) -> str:
    """Return a geom's name, or what it is and of which body, as 'capsule of trunk'."""
    of = model.body(model.geom_bodyid[geom]).name
    return model.geom(geom).name or f"{geom_kind(model, geom)} of {of}"


def geom_kind(model: mujoco.MjModel, geom: int) -> str:
    """Return the kind of a geom in words, as 'capsule'."""
    return mujoco.mjtGeom(model.geom_type[geom]).name.removeprefix("mjGEOM_").lower()
