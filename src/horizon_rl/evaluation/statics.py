"""Which scenarios statics alone makes impossible: the robot cannot be held on its feet.

A scenario is *statically impossible* if in no level stance that is tried there are
forces at the four feet, within friction, that carry the robot's weight and its external
wrench while every motor stays within its torque limit. The stances range from the
default crouch to nearly straight legs, feet shifted forward, back and sideways. It is a
bound for those who walk: a robot that lies on its thighs is not held by its feet, and
may still succeed where the command is to stand.
"""

from dataclasses import dataclass
from itertools import product

import mujoco
import numpy as np
from scipy.optimize import linprog

from horizon_rl.physics import Pool
from horizon_rl.robots import Robot

BENDS = (1.0, 0.8, 0.6, 0.4)
"""Knee angles that are tried, as shares of the default pose's: bent to straight."""
SWINGS = (0.0, 0.2, -0.2, 0.4, -0.4)
"""Angles by which all thighs are swung, rad: feet further back or forward."""
LEANS = (0.0, 0.2, -0.2, 0.4, -0.4)
"""Angles by which all hips are turned, rad: feet further left or right."""
SIDES = np.kron(np.eye(4), [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]])
"""The forces along the ground at each foot that friction limits, [16, 12]."""


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


def impossible(pool: Pool) -> np.ndarray:
    """Tell for each instance of a pool of one body whether it is impossible, [n]."""
    poses, found = _poses(pool.robot), np.ones(len(pool), dtype=bool)
    stances: list[PoseGeometry] = []
    # Most can be held in one of the first stances, and with the least forces that
    # balance them, which takes no program.
    for find_forces in (_balance_with_least, _balance_within_limits):
        for number, pose in enumerate(poses):
            if not found.any():
                return found
            if number == len(stances):
                stances.append(_measure_pose(pool.robot, pose))
            ids, stance = np.flatnonzero(found), stances[number]
            found[ids] = ~find_forces(*_demands(pool, ids, stance), stance.balance)
    return found


def _poses(robot: Robot) -> list[np.ndarray]:
    """Return joint angles [12] of stances, likely ones first, locked joints kept."""
    default = robot.default_pose_rad.reshape(4, 3)
    ranges, poses = robot.joint_ranges(), []
    for lean, swing, bend in product(LEANS, SWINGS, BENDS):
        pose = default.copy()
        # Half the change of the knee keeps the foot below the hip.
        pose[:, 1] += (1.0 - bend) * default[:, 2] / 2.0 + swing
        pose[:, 2] *= bend
        pose[:, 0] += lean
        poses.append(np.clip(pose.ravel(), *ranges))
    return poses


def _measure_pose(robot: Robot, pose: np.ndarray) -> PoseGeometry:
    model = robot.model
    data = mujoco.MjData(model)
    data.qpos[:] = model.key("stand").qpos
    data.qpos[:7] = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    data.qpos[robot.qpos_adr] = robot.source_position(pose)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)

    def jacobian(point: np.ndarray, body: int) -> np.ndarray:
        found = np.zeros((3, model.nv))
        mujoco.mj_jac(model, data, found, None, point, body)
        return found[:, robot.dof_adr] * robot.joint_sign

    feet = data.geom_xpos[robot.foot_geom_ids].copy()
    bodies = model.geom_bodyid[robot.foot_geom_ids]
    moments = [np.cross(np.eye(3), foot) for foot in feet]
    lifts = [jacobian(p, b) for p, b in zip(feet, bodies, strict=True)]
    rises = [jacobian(data.xipos[b], b)[2] for b in range(model.nbody)]
    return PoseGeometry(
        links=data.xpos.copy(),
        rotation=data.xmat.reshape(-1, 3, 3).copy(),
        balance=np.block([[np.eye(3)] * 4, moments]),
        torque=-np.concatenate(lifts).T,
        link_jacobian=np.stack(rises),
    )


def _demands(
    pool: Pool, ids: np.ndarray, stance: PoseGeometry
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what forces at the feet, f [4 x 3], must do for each instance.

    Returns:
        Force and moment that they must add up to, [n, 6], then A [n, 40, 12] and b
        [n, 40] with A f <= b: each motor within its torque either way, and each foot
        within |f_x|, |f_y| <= mu f_z, the pyramid around the friction cone.
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
    # The motors bear the weight of the links, which the ground's forces then lift.
    borne, effort = weights @ stance.link_jacobian, pool.effort[ids]
    friction = pool.fields["geom_friction"][ids][:, pool.robot.foot_geom_ids, 0]
    cones = [SIDES - np.kron(np.diag(mu), [[0, 0, 1]] * 4) for mu in friction]
    limits = np.tile(np.concatenate([stance.torque, -stance.torque]), (len(ids), 1, 1))
    return (
        -np.concatenate([force, moment], axis=1),
        np.concatenate([limits, np.reshape(cones, (-1, 16, 12))], axis=1),
        np.concatenate([effort - borne, effort + borne, np.zeros((len(ids), 16))], 1),
    )


def _balance_with_least(
    load: np.ndarray, limits: np.ndarray, bounds: np.ndarray, balance: np.ndarray
) -> np.ndarray:
    """Tell which are held by the smallest forces that balance them, [n]."""
    forces = load @ np.linalg.pinv(balance).T
    return (np.einsum("nij,nj->ni", limits, forces) <= bounds).all(axis=1)


def _balance_within_limits(
    load: np.ndarray, limits: np.ndarray, bounds: np.ndarray, balance: np.ndarray
) -> np.ndarray:
    """Tell which can be held by any forces, by linear programming, [n]."""
    ranges = [(None, None), (None, None), (0.0, None)] * 4
    return np.array(
        [
            linprog(np.zeros(12), a, b, balance, wrench, ranges, "highs").status == 0
            for a, b, wrench in zip(limits, bounds, load, strict=True)
        ],
        dtype=bool,
    )
