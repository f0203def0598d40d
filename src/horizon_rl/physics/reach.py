"""How far geoms reach toward the ground."""
# MuJoCo's extension modules carry no type stubs.
# pyright: reportAttributeAccessIssue=false

import mujoco
import numpy as np


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
            return -np.min(up @ _vertices(model, geom).T, axis=1)


def _vertices(model: mujoco.MjModel, geom: int) -> np.ndarray:
    mesh = model.geom_dataid[geom]
    first = model.mesh_vertadr[mesh]
    return model.mesh_vert[first : first + model.mesh_vertnum[mesh]]
