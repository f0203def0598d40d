"""Which scenarios statics alone makes impossible: the robot cannot be held on its feet.

A scenario is *statically impossible* if in no level stance that is tried there are
forces at the four feet, within friction, that carry the robot's weight and its external
wrench while every motor stays within its torque limit. The stances range from the
default crouch to nearly straight legs, feet shifted forth, back and sideways. It is a
bound for those who walk: a robot that lies on its thighs is not held by its feet, and
may still succeed where the command is to stand.
"""
# MuJoCo's extension modules carry no type stubs.
# pyright: reportAttributeAccessIssue=false

from dataclasses import dataclass
from itertools import product

import mujoco
import numpy as np
from scipy.linalg import block_diag
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


@dataclass(frozen=True, eq=False)
class PoseGeometry:
    """A pose's geometry, trunk level at the origin."""

    links: np.ndarray
    """[bodies, 3] origins of the links."""
    rotation: np.ndarray
    """[bodies, 3, 3] orientations, to move a centre of mass within its link."""
    balance: np.ndarray
    """[6, 12] force and moment that forces at the feet, [4 x 3], add up to."""
    torque: np.ndarray
    """[12, 12] what those forces take off the motors."""
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
    stances = [_measure_pose(pool.robot, pose) for pose in _poses(pool.robot)]
    found = np.ones(len(pool), dtype=bool)
    # Most can be held with the least forces that balance them, which takes no program.
    for check in (_held_by_least_forces, _held_by_any_forces):
        for stance in stances:
            ids = np.flatnonzero(found)
            found[ids] = ~check(pool, ids, stance)
    return found


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


def _measure_pose(robot: Robot, pose: np.ndarray) -> PoseGeometry:
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
    return PoseGeometry(
        links=data.xpos.copy(),
        rotation=data.xmat.reshape(-1, 3, 3).copy(),
        balance=np.concatenate(
            [
                np.hstack([np.eye(3)] * 4),
                np.hstack([np.cross(np.eye(3), p) for p in feet]),
            ]
        ),
        torque=-np.concatenate(
            [jacobian(p, b) for p, b in zip(feet, bodies, strict=True)]
        ).T,
        link_jacobian=np.stack(
            [jacobian(data.xipos[b], b)[2] for b in range(model.nbody)]
        ),
    )


def _held_by_least_forces(
    pool: Pool, ids: np.ndarray, stance: PoseGeometry
) -> np.ndarray:
    """Tell which are held by the smallest foot forces that balance them, [len(ids)]."""
    load, offset = _demands(pool, ids, stance)
    forces = load @ np.linalg.pinv(stance.balance).T
    x, y, z = np.moveaxis(forces.reshape(-1, 4, 3), -1, 0)
    friction = pool.fields["geom_friction"][ids][:, pool.robot.foot_geom_ids, 0]
    grips = np.maximum(np.abs(x), np.abs(y)) <= friction * z
    strong = np.abs(forces @ stance.torque.T + offset) <= pool.effort[ids]
    return np.logical_and(grips.all(axis=1), strong.all(axis=1), dtype=bool)


def _held_by_any_forces(
    pool: Pool, ids: np.ndarray, stance: PoseGeometry
) -> np.ndarray:
    """Look for foot forces that hold each instance up, by linear programming."""
    loads, offsets = _demands(pool, ids, stance)
    friction = pool.fields["geom_friction"][ids][:, pool.robot.foot_geom_ids, 0]
    held = np.zeros(len(ids), dtype=bool)
    for k, i in enumerate(ids):
        limit, offset = pool.effort[i], offsets[k]
        found = linprog(
            np.zeros(12),
            A_ub=np.concatenate([stance.torque, -stance.torque, _cone(friction[k])]),
            b_ub=np.concatenate([limit - offset, limit + offset, np.zeros(16)]),
            A_eq=stance.balance,
            b_eq=loads[k],
            bounds=[(None, None), (None, None), (0.0, None)] * 4,
            method="highs",
        )
        held[k] = found.status == 0
    return held


def _demands(
    pool: Pool, ids: np.ndarray, stance: PoseGeometry
) -> tuple[np.ndarray, np.ndarray]:
    """Return what the feet must bear, force and moment [n, 6], and the motors [n, 12].

    The motors' part is the weight of the links, which the ground's forces then lift.
    """
    ipos = pool.fields["body_ipos"][ids]
    centres = stance.links + np.einsum("bij,nbj->nbi", stance.rotation, ipos)
    weights = -pool.robot.model.opt.gravity[2] * pool.fields["body_mass"][ids]
    force, moment = pool.wrench[ids, :3].copy(), pool.wrench[ids, 3:].copy()
    moment += np.cross(centres[:, pool.robot.trunk_body_id], force)
    pull = np.zeros_like(centres)
    pull[:, :, 2] = -weights
    force += pull.sum(axis=1)
    moment += np.cross(centres, pull).sum(axis=1)
    return -np.concatenate([force, moment], axis=1), weights @ stance.link_jacobian


def _cone(friction: np.ndarray) -> np.ndarray:
    """Return rows that say |f_x|, |f_y| <= mu f_z: the pyramid around the cone."""
    sides = ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0))
    cones = ([[*side, -mu] for side in sides] for mu in friction)
    return np.asarray(block_diag(*cones))
