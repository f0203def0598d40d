"""MuJoCo's geoms as triangles in viser's scene."""
# MuJoCo's extension modules carry no type stubs.
# pyright: reportAttributeAccessIssue=false

import mujoco
import numpy as np
import trimesh
import viser
from mujoco import mjtGeom
from trimesh import creation

ROUND = 20
"""Segments of a circle."""


def add_robot(
    scene: viser.SceneApi, model: mujoco.MjModel
) -> dict[int, viser.FrameHandle]:
    """Add what a viewer would show of a robot; return its bodies' frames by their ids.

    The floor is left out.
    """
    bodies: dict[int, viser.FrameHandle] = {}
    moving = np.flatnonzero(model.geom_bodyid > 0)
    shown = moving[model.geom_group[moving] < 3]
    # Imported files may have collision geoms only, in the group that viewers hide.
    for geom in map(int, shown if len(shown) else moving):
        mesh, body = _triangles(model, geom), int(model.geom_bodyid[geom])
        root = f"/robot/{body}"
        if body not in bodies:
            bodies[body] = scene.add_frame(root, show_axes=False)
        material = model.geom_matid[geom]
        rgba = model.mat_rgba[material] if material >= 0 else model.geom_rgba[geom]
        scene.add_mesh_simple(
            f"{root}/geom{geom}",
            np.asarray(mesh.vertices, np.float32),
            np.asarray(mesh.faces, np.uint32),
            color=(255 * rgba[:3]).astype(np.uint8),
            position=model.geom_pos[geom].copy(),
            wxyz=model.geom_quat[geom].copy(),
            flat_shading=bool(model.geom_type[geom] == mjtGeom.mjGEOM_BOX),
        )
    return bodies


def _triangles(model: mujoco.MjModel, geom: int) -> trimesh.Trimesh:
    size, kind = model.geom_size[geom], model.geom_type[geom]
    if kind == mjtGeom.mjGEOM_MESH:
        mesh = model.mesh(model.geom_dataid[geom])
        vertex, face = int(mesh.vertadr[0]), int(mesh.faceadr[0])
        return trimesh.Trimesh(
            model.mesh_vert[vertex : vertex + int(mesh.vertnum[0])],
            model.mesh_face[face : face + int(mesh.facenum[0])],
            process=False,
        )
    if kind == mjtGeom.mjGEOM_BOX:
        return creation.box(extents=2.0 * size)
    if kind == mjtGeom.mjGEOM_CYLINDER:
        return creation.cylinder(size[0], 2.0 * size[1], sections=ROUND)
    if kind == mjtGeom.mjGEOM_CAPSULE:
        mesh = creation.capsule(2.0 * size[1], size[0], count=[ROUND, ROUND])
        return mesh.apply_translation((0.0, 0.0, -mesh.bounds.mean(axis=0)[2]))
    # A sphere or an ellipsoid.
    radii = size if kind == mjtGeom.mjGEOM_ELLIPSOID else size[[0, 0, 0]]
    return creation.icosphere(subdivisions=2).apply_scale(radii)
