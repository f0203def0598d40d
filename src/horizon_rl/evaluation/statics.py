"""Which scenarios no policy can win: their robot cannot even be held up.

A scenario is *statically impossible* if in no stance that is tried there are forces at
the four feet, within friction, that carry the robot's weight and its external wrench
while every motor stays within its torque limit. The stances range from the default
crouch to nearly straight legs, feet shifted forth, back and sideways: generous, so that
the share of such scenarios is a bound on success and not an opinion.
"""
# MuJoCo's extension modules carry no type stubs.
# pyright: reportAttributeAccessIssue=false

from dataclasses import dataclass
from itertools import product

import mujoco
import numpy as np
from scipy.optimize import linprog

from horizon_rl.evaluation.array_cache import ArrayCache, make_key
from horizon_rl.evaluation.suite import FrozenColumn
from horizon_rl.physics import Pool
from horizon_rl.robots import Robot

BENDS = (1.0, 0.8, 0.6, 0.4)
"""Knee angles that are tried, as shares of the default pose's: bent to straight."""
SWINGS = (0.0, 0.2, -0.2, 0.4, -0.4)
"""Angles by which all thighs are swung, rad: feet further back or forth."""
LEANS = (0.0, 0.2, -0.2, 0.4, -0.4)
"""Angles by which all hips are turned, rad: feet further left or right."""
GRAVITY = 9.81


@dataclass(frozen=True, eq=False)
class Stance:
    """A pose's geometry, trunk level at the origin."""

    links: np.ndarray
    """[bodies, 3] centres of mass."""
    rotation: np.ndarray
    """[bodies, 3, 3] orientations, to move a centre of mass within its link."""
    feet: np.ndarray
    """[4, 3]"""
    foot_jacobian: np.ndarray
    """[4, 3, 12] motion of each foot by each joint, canonical signs."""
    link_jacobian: np.ndarray
    """[bodies, 12] rise of each link's centre of mass by each joint."""


def impossible_share(column: FrozenColumn, n: int, cache: ArrayCache) -> float:
    """Return the share of a column's first n scenarios that is impossible."""
    key = make_key(kind="statics", column=column.digest)
    kept = cache.read(key, ["impossible"])
    if kept is None or len(kept["impossible"]) < n:
        kept = {"impossible": impossible(column.scenarios(n).pool)}
        cache.write(key, kept)
    return float(kept["impossible"][:n].mean())


def impossible(pool: Pool) -> np.ndarray:
    """Tell for each instance of a pool of one body whether it is impossible, [n]."""
    robot = pool.robot
    stances = [_stance(robot, pose) for pose in _poses(robot)]
    return np.array(
        [
            not any(_can_hold(pool, i, stance) for stance in stances)
            for i in range(len(pool))
        ]
    )


def _poses(robot: Robot) -> list[np.ndarray]:
    """Return joint angles [12] of stances, likely ones first, locked joints kept."""
    default = robot.default_pose_rad.reshape(4, 3)
    joints = robot.model.dof_jntid[robot.dof_adr]
    ends = robot.joint_sign[:, None] * robot.model.jnt_range[joints]
    ends = np.sort(ends + robot.joint_offset_rad[:, None], axis=1)
    limited = robot.model.jnt_limited[joints].astype(bool)
    poses = []
    for lean, swing, bend in product(LEANS, SWINGS, BENDS):
        pose = default.copy()
        # Half the change of the knee keeps the foot below the hip.
        pose[:, 1] += (1.0 - bend) * default[:, 2] / 2.0 + swing
        pose[:, 2] *= bend
        pose[:, 0] += lean
        flat = pose.ravel()
        poses.append(np.where(limited, np.clip(flat, ends[:, 0], ends[:, 1]), flat))
    return poses


def _stance(robot: Robot, pose: np.ndarray) -> Stance:
    model = robot.model
    data = mujoco.MjData(model)
    data.qpos[:] = model.key("stand").qpos
    data.qpos[:7] = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    data.qpos[robot.qpos_adr] = robot.source_position(pose)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    sign = robot.joint_sign

    def jacobian(point: np.ndarray, body: int) -> np.ndarray:
        found = np.zeros((3, model.nv))
        mujoco.mj_jac(model, data, found, None, point, body)
        return found[:, robot.dof_adr] * sign

    feet = data.geom_xpos[robot.foot_geom_ids].copy()
    bodies = model.geom_bodyid[robot.foot_geom_ids]
    return Stance(
        links=data.xpos.copy(),
        rotation=data.xmat.reshape(-1, 3, 3).copy(),
        feet=feet,
        foot_jacobian=np.stack(
            [jacobian(p, b) for p, b in zip(feet, bodies, strict=True)]
        ),
        link_jacobian=np.stack(
            [jacobian(data.xipos[b], b)[2] for b in range(model.nbody)]
        ),
    )


def _can_hold(pool: Pool, i: int, stance: Stance) -> bool:
    """Look for foot forces [4, 3] that hold instance `i` up, by linear programming."""
    mass = pool.fields["body_mass"][i]
    ipos = pool.fields["body_ipos"][i]
    friction = pool.fields["geom_friction"][i, pool.robot.foot_geom_ids, 0]
    centres = stance.links + np.einsum("bij,bj->bi", stance.rotation, ipos)
    weights = GRAVITY * mass
    wrench = pool.wrench[i]
    load = np.array([0.0, 0.0, -weights.sum()]) + wrench[:3]
    moment = np.cross(centres, np.stack([0 * mass, 0 * mass, -weights], axis=1)).sum(0)
    moment += wrench[3:] + np.cross(centres[pool.robot.trunk_body_id], wrench[:3])
    # Forces and moments of the feet balance the load: A f = b.
    balance = np.concatenate(
        [
            np.hstack([np.eye(3)] * 4),
            np.hstack([_cross_matrix(foot) for foot in stance.feet]),
        ]
    )
    # A motor bears its share of the links, less what the ground's force lifts.
    torque = -np.concatenate(list(stance.foot_jacobian), axis=0).T
    offset = stance.link_jacobian.T @ weights
    limit = pool.effort[i]
    # |f_x|, |f_y| <= mu f_z: the pyramid around the cone.
    cone = np.zeros((16, 12))
    for foot, mu in enumerate(friction):
        for k, (axis, side) in enumerate(product((0, 1), (1.0, -1.0))):
            cone[4 * foot + k, 3 * foot + axis] = side
            cone[4 * foot + k, 3 * foot + 2] = -mu
    found = linprog(
        np.zeros(12),
        A_ub=np.concatenate([torque, -torque, cone]),
        b_ub=np.concatenate([limit - offset, limit + offset, np.zeros(16)]),
        A_eq=balance,
        b_eq=-np.concatenate([load, moment]),
        bounds=[(None, None), (None, None), (0.0, None)] * 4,
        method="highs",
    )
    return found.status == 0


def _cross_matrix(p: np.ndarray) -> np.ndarray:
    x, y, z = p
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
