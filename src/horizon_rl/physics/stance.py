"""How instances stand: how low their geoms reach, and how changed legs tilt the trunk."""

import mujoco
import numpy as np
from mjbatch import Batch

from horizon_rl.physics.draft import PoolDraft

LIFTED = (0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0)
"""A level trunk."""


def reach_down(
    model: mujoco.MjModel, geom: int, size: np.ndarray, up: np.ndarray
) -> np.ndarray:
    """Return how far a geom reaches below its centre, [n].

    Args:
        model: says what shape the geom has.
        geom: its id.
        size: [n, 3] its size in each world.
        up: [n, 3] the world's vertical in the geom's frame.
    """
    across = np.sqrt(np.clip(1.0 - up[:, 2] ** 2, 0.0, 1.0))
    match mujoco.mjtGeom(int(model.geom_type[geom])):
        case mujoco.mjtGeom.mjGEOM_SPHERE:
            return size[:, 0]
        case mujoco.mjtGeom.mjGEOM_CAPSULE:
            return size[:, 0] + size[:, 1] * np.abs(up[:, 2])
        case mujoco.mjtGeom.mjGEOM_CYLINDER:
            return size[:, 0] * across + size[:, 1] * np.abs(up[:, 2])
        case mujoco.mjtGeom.mjGEOM_ELLIPSOID:
            return np.linalg.norm(size * up, axis=1)
        case mujoco.mjtGeom.mjGEOM_BOX:
            return np.sum(size * np.abs(up), axis=1)
        case _:
            mesh = model.geom_dataid[geom]
            first, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
            vertices = model.mesh_vert[first : first + count]
            return -np.min(up @ vertices.T, axis=1)


def stand_again(
    batch: Batch, draft: PoolDraft, qpos: np.ndarray, height: np.ndarray
) -> None:
    """Find height and tilt at which reshaped robots stand in their default pose.

    Args:
        batch: A world for each instance, with its model fields.
        draft: Says which instances no longer stand as their bodies do.
        qpos: [n, nq] starts, whose trunks are tilted.
        height: [n] m, from the ground to the trunk's origin; overwritten, too.
    """
    robot, feet = draft.robot, draft.robot.foot_geom_ids
    standing = batch.bind("qpos")
    standing[:] = qpos
    standing[:, :7] = LIFTED
    pose = np.clip(draft.body_pose, *draft.joint_ranges())
    standing[:, robot.qpos_adr] = robot.source_position(pose)
    position, rotation = batch.bind("geom_xpos"), batch.bind("geom_xmat")
    batch.forward()
    centers = position[:, feet] - np.array(LIFTED[:3])
    size, up = draft.fields["geom_size"], rotation[:, feet, 6:]
    reach = [
        reach_down(robot.model, int(geom), size[:, geom], up[:, foot])
        for foot, geom in enumerate(feet)
    ]
    level, quat = rest_on_plane(centers)
    changed = draft.reshaped
    qpos[changed, 3:7] = quat[changed]
    height[changed] = (level + np.mean(reach, axis=0))[changed]


def rest_on_plane(centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lay trunks so that the plane nearest to their four feet is level.

    Args:
        centers: [n, 4, 3] centres of the feet in the trunk's frame, m.

    Returns:
        Height of the trunk's origin above that plane, [n], and the trunk's orientation,
        [n, 4], w x y z, without yaw.
    """
    # z = a + b x + c y: (-b, -c, 1) is normal to it, and turns upright.
    across = np.concatenate([np.ones_like(centers[..., :1]), centers[..., :2]], axis=-1)
    a, b, c = np.einsum("nij,nj->in", np.linalg.pinv(across), centers[..., 2])
    steep = np.sqrt(1.0 + b**2 + c**2)
    quat = np.stack([steep + 1.0, -c, b, 0.0 * b], axis=1)
    return -a / steep, quat / np.linalg.norm(quat, axis=1, keepdims=True)
