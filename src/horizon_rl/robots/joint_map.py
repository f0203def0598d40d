"""Find the canonical joints and feet in a quadruped model that someone else wrote."""
# MuJoCo's extension modules carry no type stubs.
# pyright: reportAttributeAccessIssue=false

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import mujoco
import numpy as np

from horizon_rl.robots.morphology import JOINT_NAMES, LEG_NAMES
from horizon_rl.support.errors import InputError, unknown

FRONT, REAR = ("front", "fore"), ("rear", "hind", "back")
LEG_TOKENS = {
    "FL": ("fl", "lf"),
    "FR": ("fr", "rf"),
    "RL": ("rl", "lr", "hl", "lh", "bl", "lb"),
    "RR": ("rr", "hr", "rh", "br", "rb"),
}
NAME_RULE = (
    "a joint's name must hold its leg: FL FR RL RR, LF RF LH RH, HL HR, or words as in "
    "front_left; or give an explicit map of " + ", ".join(JOINT_NAMES)
)
AXIS_TOLERANCE = 0.99
SPHERE = mujoco.mjtGeom.mjGEOM_SPHERE


@dataclass(frozen=True, kw_only=True)
class JointMap:
    """Where the canonical joints are, and how their angles are counted."""

    joint_ids: np.ndarray
    """Joint of the model for each canonical joint."""
    sign: np.ndarray
    """canonical angle = sign * qpos + offset."""
    offset_rad: np.ndarray
    """canonical angle = sign * qpos + offset."""
    thigh_length_m: float
    """Thigh joint to knee, mean of the four legs."""
    calf_length_m: float
    """Knee to the foot's centre, mean of the four legs."""


def leg_of(name: str) -> str | None:
    """Read the leg from a joint's name.

    >>> leg_of("LH_KFE"), leg_of("abduction_front_left"), leg_of("wheel")
    ('RL', 'FL', None)
    """
    tokens = set(re.split(r"[^a-z0-9]+", name.lower()))
    for leg, accepted in LEG_TOKENS.items():
        if tokens & set(accepted):
            return leg
    end = "F" if tokens & set(FRONT) else "R" if tokens & set(REAR) else None
    side = "L" if "left" in tokens else "R" if "right" in tokens else None
    return end + side if end and side else None


def find_root(model: mujoco.MjModel) -> int:
    """Return the body that floats."""
    free = np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE)
    if len(free) != 1:
        raise InputError(
            f"needs one floating base (a freejoint), found {len(free)}; bodies: "
            + _listed(model.body(i).name for i in range(1, model.nbody))
        )
    return int(model.jnt_bodyid[free[0]])


def find_joints(
    model: mujoco.MjModel, names: Mapping[str, str] | None = None
) -> np.ndarray:
    """Return the twelve joints in canonical order, by explicit map or by name rules."""
    hinges = np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_HINGE).tolist()
    found = [model.joint(i).name for i in hinges]
    if len(hinges) != 12 or model.njnt != 13:
        raise InputError(
            "needs 12 hinge joints and a free one, found "
            f"{len(hinges)} hinge joints of {model.njnt} joints: {_listed(found)}"
        )
    if names is not None:
        return _find_by_map(found, hinges, names)
    legs: dict[str, list[int]] = {leg: [] for leg in LEG_NAMES}
    for joint_id, name in zip(hinges, found, strict=True):
        leg = leg_of(name)
        if leg is None:
            raise InputError(
                f"joint '{name}' names no leg; found {_listed(found)}; {NAME_RULE}"
            )
        legs[leg].append(joint_id)
    counts = {leg: len(ids) for leg, ids in legs.items()}
    if set(counts.values()) != {3}:
        raise InputError(
            f"needs 3 joints a leg, found {counts}: {_listed(found)}; {NAME_RULE}"
        )
    # MuJoCo numbers joints from the trunk outward: hip, thigh, calf, whatever the file
    # calls them.
    return np.array([joint_id for leg in LEG_NAMES for joint_id in legs[leg]])


def find_feet(
    model: mujoco.MjModel, joint_ids: np.ndarray, names: Mapping[str, str] | None = None
) -> np.ndarray:
    """Return each leg's foot geom: as mapped, as named, or the sphere farthest out."""
    names = names or {}
    if unmapped := set(names) - set(LEG_NAMES):
        raise InputError(unknown("leg", min(unmapped), LEG_NAMES))
    calves = zip(LEG_NAMES, joint_ids[2::3].tolist(), strict=True)
    return np.array([_find_foot(model, leg, i, names.get(leg)) for leg, i in calves])


def measure(
    model: mujoco.MjModel, root: int, joint_ids: np.ndarray, foot_geom_ids: np.ndarray
) -> JointMap:
    """Derive signs, offsets and lengths from the geometry at the reference pose."""
    data = mujoco.MjData(model)
    root_adr = model.jnt_qposadr[model.body_jntadr[root]]
    data.qpos[root_adr : root_adr + 7] = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    mujoco.mj_kinematics(model, data)
    _check_chains(model, joint_ids)
    sign = _axis_signs(model, data, joint_ids)
    anchors = data.xanchor[joint_ids].reshape(4, 3, 3)
    _check_sides(anchors[:, 0])
    thigh = anchors[:, 2] - anchors[:, 1]
    calf = data.geom_xpos[foot_geom_ids] - anchors[:, 2]
    thigh_angle, shank_angle = _swing(thigh), _swing(calf)
    angle = np.stack([np.zeros(4), thigh_angle, shank_angle - thigh_angle], axis=1)
    wrapped = np.remainder(angle + np.pi, 2.0 * np.pi) - np.pi
    reference = model.qpos0[model.jnt_qposadr[joint_ids]]
    return JointMap(
        joint_ids=joint_ids,
        sign=sign,
        offset_rad=wrapped.ravel() - sign * reference,
        thigh_length_m=float(np.hypot(thigh[:, 0], thigh[:, 2]).mean()),
        calf_length_m=float(np.hypot(calf[:, 0], calf[:, 2]).mean()),
    )


def _find_by_map(
    found: list[str], hinges: list[int], names: Mapping[str, str]
) -> np.ndarray:
    missing = [name for name in JOINT_NAMES if name not in names]
    extra = [name for name in names if name not in JOINT_NAMES]
    absent = [name for name in names.values() if name not in found]
    if missing or extra or absent or len(set(names.values())) != 12:
        raise InputError(
            "the joint map must give each canonical joint one joint of the file; "
            f"missing: {_listed(missing)}; not canonical: {_listed(extra)}; "
            f"not in the file: {_listed(absent)}; the file has {_listed(found)}"
        )
    return np.array([hinges[found.index(names[name])] for name in JOINT_NAMES])


def _find_foot(model: mujoco.MjModel, leg: str, calf: int, name: str | None) -> int:
    calf_body = int(model.jnt_bodyid[calf])
    solid = np.flatnonzero(model.geom_contype | model.geom_conaffinity).tolist()
    below = [i for i in solid if _hangs_on(model, model.geom_bodyid[i], calf_body)]
    if name is not None:
        feet = [i for i in below if model.geom(i).name == name]
        needed = f"geom '{name}' that the map names"
    else:
        feet = [i for i in below if _is_called_foot(model, i, calf_body)]
        feet = feet or [i for i in below if model.geom_type[i] == SPHERE]
        needed = "sphere, or a geom or body with 'foot' or 'toe' in its name"
    if not feet:
        found = _listed(_describe(model, i) for i in below)
        raise InputError(
            f"leg {leg} has no foot: needs, below the knee and able to collide, a "
            f"{needed}; found {found}"
        )
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    reach = np.linalg.norm(data.geom_xpos[feet] - data.xanchor[calf], axis=1)
    return feet[int(reach.argmax())]


def _is_called_foot(model: mujoco.MjModel, geom: int, calf_body: int) -> bool:
    body = model.geom_bodyid[geom]
    name = model.geom(geom).name + ("" if body == calf_body else model.body(body).name)
    return any(word in name.lower() for word in ("foot", "toe"))


def _axis_signs(
    model: mujoco.MjModel, data: mujoco.MjData, joint_ids: np.ndarray
) -> np.ndarray:
    axes = data.xaxis[joint_ids]
    along = np.where(np.arange(12) % 3 == 0, axes[:, 0], axes[:, 1])
    wrong = [
        f"{_pairing(model, joint_ids, i)} turns about {axes[i].round(2).tolist()}"
        for i in np.flatnonzero(np.abs(along) < AXIS_TOLERANCE).tolist()
    ]
    if wrong:
        raise InputError(
            "each leg must turn about x at the hip and about y at thigh and calf, in a "
            f"trunk that faces +x; found {_listed(wrong)}"
        )
    return np.sign(along)


def _check_chains(model: mujoco.MjModel, joint_ids: np.ndarray) -> None:
    for i in range(12):
        outer, inner = joint_ids[i], joint_ids[i - 1]
        bodies = model.jnt_bodyid[outer], model.jnt_bodyid[inner]
        if i % 3 and not (outer > inner and _hangs_on(model, *bodies)):
            raise InputError(
                "calf must hang on thigh and thigh on hip; found "
                f"{_pairing(model, joint_ids, i)} not below "
                f"{_pairing(model, joint_ids, i - 1)}"
            )


def _check_sides(hips: np.ndarray) -> None:
    front, rear = hips[:2, 0].min(), hips[2:, 0].max()
    left, right = hips[::2, 1].min(), hips[1::2, 1].max()
    if front <= rear or left <= right:
        where = dict(zip(LEG_NAMES, hips[:, :2].round(3).tolist(), strict=True))
        raise InputError(
            "front hips must lie at larger x than rear ones, left hips at larger y "
            f"than right ones, in a trunk that faces +x; found {where}"
        )


def _swing(vectors: np.ndarray) -> np.ndarray:
    """Return the angle about y that swings straight down to each vector."""
    return np.arctan2(-vectors[:, 0], -vectors[:, 2])


def _hangs_on(model: mujoco.MjModel, body: int, ancestor: int) -> bool:
    while body > ancestor:
        body = model.body_parentid[body]
    return body == ancestor


def _pairing(model: mujoco.MjModel, joint_ids: np.ndarray, index: int) -> str:
    return f"{model.joint(joint_ids[index]).name} as {JOINT_NAMES[index]}"


def _describe(model: mujoco.MjModel, geom: int) -> str:
    kind = mujoco.mjtGeom(model.geom_type[geom]).name.removeprefix("mjGEOM_").lower()
    return model.geom(geom).name or f"unnamed {kind}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
