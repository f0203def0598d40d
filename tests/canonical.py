"""Canonical joint angles, read from a simulation's positions."""

import numpy as np

from horizon_rl.robots import Robot


def canonical_position(robot: Robot, qpos: np.ndarray) -> np.ndarray:
    """Read canonical joint angles from qpos, shape (..., nq) -> (..., 12)."""
    return robot.joint_sign * qpos[..., robot.qpos_adr] + robot.joint_offset_rad
