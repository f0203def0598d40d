"""A pose to stand in: found by kinematics, or told why a pose is none."""

import math
from collections.abc import Iterator

import mujoco
import numpy as np

from horizon_rl.robots.morphology import JOINT_NAMES, LEG_NAMES, Stance, rest_on_feet
from horizon_rl.support.errors import InputError

TURN = 2.0 * math.pi
USUAL_RAD = (0.0, 0.8, -1.5)
"""Hip, thigh and calf as most robots stand; the knee points back."""
USUAL_OFFSET = 0.1
"""How far from below its hip a foot may be in that pose, over the leg's length."""
EXTENSIONS = (0.73, 0.76, 0.7, 0.79, 0.67, 0.82, 0.64, 0.85, 0.6, 0.9, 0.55, 0.95)
"""Distance from hip to foot over the leg's length, in the order they are tried."""
WIDEST_HIP_RAD = 0.3
"""A leg that cannot come closer to the vertical stands on no foot below its hip."""

LEAST_HEIGHT, MOST_HEIGHT = 0.35, 1.15
"""Of a thigh joint above the ground, over the leg's length."""
MOST_REACH = 0.6
"""Of a foot before, behind or beside its thigh joint, over the leg's length."""
MOST_PITCH_RAD = 0.35
DEEPEST_M = 0.01
"""How far anything but a foot may lie below the feet."""


def turns_into(pose: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the fewest whole turns that put angles into their ranges; NaN: none do."""
    least = np.ceil((low - pose) / TURN - 1e-9)
    most = np.floor((high - pose) / TURN + 1e-9)
    return np.where(least > most, np.nan, np.clip(0.0, least, most))


def find_pose(
    thigh_m: float, calf_m: float, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Find canonical angles that put each foot below its hip, knees bent.

    All legs are as far extended; both knees of an end bend the same way, back unless
    they bend further the other way or cannot.

    Args:
        thigh_m: Length, thigh joint to knee.
        calf_m: Length, knee to foot.
        low: [12] least angles, rad; a whole turn more or less is the same angle.
        high: [12] largest ones.
    """
    poses = np.array(list(_leg_poses(thigh_m, calf_m)))
    fits = ~np.isnan(turns_into(np.tile(poses, 4), low, high))
    # A hip need not be upright, only close to it.
    hips = np.clip(0.0, low[::3], high[::3])
    fits[..., ::3] = np.abs(hips) <= WIDEST_HIP_RAD
    for pair, fitting in zip(poses, fits, strict=True):
        front, hind = (_choose_bend(fitting, low, high, end) for end in (0, 1))
        if front is not None and hind is not None:
            pose = np.stack([pair[front]] * 2 + [pair[hind]] * 2)
            pose[:, 0] = hips
            return pose.ravel()
    raise InputError(f"no pose to stand in: {_why_none_fits(poses, fits, low, high)}")


def _leg_poses(thigh_m: float, calf_m: float) -> Iterator[list[list[float]]]:
    """Yield poses of a leg to try, each with its knee pointing back and forward."""
    _, thigh, calf = USUAL_RAD
    ahead = thigh_m * math.sin(thigh) + calf_m * math.sin(thigh + calf)
    if abs(ahead) < USUAL_OFFSET * (thigh_m + calf_m):
        yield [[0.0, thigh, calf], [0.0, -thigh, -calf]]
    for extension in EXTENSIONS:
        reach = extension * (thigh_m + calf_m)
        if reach <= abs(thigh_m - calf_m):
            continue  # The links cannot fold that far.
        calf = math.acos((reach**2 - thigh_m**2 - calf_m**2) / (2.0 * thigh_m * calf_m))
        thigh = math.atan2(calf_m * math.sin(calf), thigh_m + calf_m * math.cos(calf))
        yield [[0.0, thigh, -calf], [0.0, -thigh, calf]]


def _choose_bend(
    fitting: np.ndarray, low: np.ndarray, high: np.ndarray, end: int
) -> int | None:
    """Choose how the knees of an end bend, 0 back and 1 forward, of what fits [2, 12]."""
    joints = slice(6 * end, 6 * end + 6)
    back = np.minimum(-low[joints][2::3], math.pi)
    forward = np.minimum(high[joints][2::3], math.pi)
    order = (1, 0) if np.all(forward > back) else (0, 1)
    return next((way for way in order if fitting[way, joints].all()), None)


def _why_none_fits(
    poses: np.ndarray, fits: np.ndarray, low: np.ndarray, high: np.ndarray
) -> str:
    """Name the joint that keeps the legs from standing; fits: [poses, 2, 12]."""
    angles = np.abs(poses).reshape(-1, 3)
    able = fits.reshape(-1, 12)
    by_leg = np.asarray(able.reshape(-1, 4, 3).all(axis=2))
    stiff = np.flatnonzero(~able.any(axis=0))
    if len(stiff):
        joint = int(stiff[0])
        near, far = angles[:, joint % 3].min(), angles[:, joint % 3].max()
        wanted = f"{near:.2f} to {far:.2f} rad of either sign"
        if joint % 3 == 0:
            wanted = f"an angle within {WIDEST_HIP_RAD:g} rad of 0"
    elif not by_leg.any(axis=0).all():
        # Each joint can, but not together: blame the one that the knee is driven by.
        joint = 3 * int(np.argmin(by_leg.any(axis=0))) + 2
        wanted = f"one that goes with its {JOINT_NAMES[joint - 1]}"
    else:
        joint = 3 * int(np.argmin(by_leg[by_leg.sum(axis=1).argmax()])) + 2
        wanted = "one at which it is as far extended as the other legs"
    return (
        f"{JOINT_NAMES[joint]} turns {low[joint]:.2f}..{high[joint]:.2f} rad, counted "
        f"from straight down; a leg that stands needs {wanted}"
    )


def find_stance(
    model: mujoco.MjModel, qpos: np.ndarray, foot_geom_ids: list[int]
) -> Stance:
    """Stand on feet of whatever shape: each counts as a sphere that reaches as low."""
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    data.qpos[:7] = (0.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0)
    mujoco.mj_kinematics(model, data)
    [floor] = np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)
    centers = data.geom_xpos[foot_geom_ids] - data.qpos[:3]
    lowest = [
        mujoco.mj_geomDistance(model, data, int(floor), foot, 10.0, None)
        for foot in foot_geom_ids
    ]
    radii = data.geom_xpos[foot_geom_ids][:, 2] - lowest
    return rest_on_feet(centers, radii)


def why_no_stance(
    model: mujoco.MjModel,
    qpos: np.ndarray,
    foot_geom_ids: list[int],
    joint_ids: np.ndarray,
    leg_length_m: float,
) -> str | None:
    """Say why a robot does not stand in the pose of `qpos`, naming a joint; None: it does.

    A leg stands if its thigh joint is about a leg's length above the ground and its
    foot below it, and if nothing else reaches the ground first.
    """
    stance = find_stance(model, qpos, foot_geom_ids)
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    data.qpos[:7] = (0.0, 0.0, stance.height_m, *stance.quat)
    mujoco.mj_kinematics(model, data)
    thighs = data.xanchor[joint_ids[1::3]]
    reach = np.linalg.norm((data.geom_xpos[foot_geom_ids] - thighs)[:, :2], axis=1)
    for leg, height, apart in zip(LEG_NAMES, thighs[:, 2], reach, strict=True):
        if not LEAST_HEIGHT <= height / leg_length_m <= MOST_HEIGHT:
            where = f"{height:.3f} m above the ground"
        elif apart > MOST_REACH * leg_length_m:
            where = f"{apart:.3f} m before, behind or beside its foot"
        else:
            continue
        return f"{leg}_thigh would be {where}, with legs of {leg_length_m:.3f} m"
    if abs(stance.pitch_rad) > MOST_PITCH_RAD:
        return (
            f"the trunk would be tilted by {math.degrees(stance.pitch_rad):.0f} degrees"
        )
    [floor] = np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)
    for geom in np.flatnonzero(model.geom_conaffinity == 1).tolist():
        depth = -mujoco.mj_geomDistance(model, data, int(floor), geom, 10.0, None)
        if depth > DEEPEST_M:
            body = model.body(model.geom_bodyid[geom]).name
            return f"'{body}' would be {depth:.3f} m below the feet"
    return None
