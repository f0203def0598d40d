"""MuJoCo's geoms as triangles, for viewers that know no MuJoCo."""
# MuJoCo's extension modules carry no type stubs.
# pyright: reportAttributeAccessIssue=false

from collections.abc import Iterator
from dataclasses import dataclass

import mujoco
import numpy as np
import trimesh

ROUND = 20
"""Segments of a circle."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Shape:
    """A geom in the frame of its body."""

    name: str
    body_id: int
    vertices: np.ndarray
    faces: np.ndarray
    color: tuple[int, int, int]
    has_edges: bool
    """Whether it is drawn with flat faces, as a box."""
    position: np.ndarray
    wxyz: np.ndarray


def make_shapes(model: mujoco.MjModel) -> Iterator[Shape]:
    """Turn what a viewer would show of the robot into shapes; the floor is left out."""
    moving = np.flatnonzero(model.geom_bodyid > 0)
    shown = moving[model.geom_group[moving] < 3]
    # Imported files may have collision geoms only, in the group that viewers hide.
    for geom in shown if len(shown) else moving:
        mesh = _triangles(model, int(geom))
        if mesh is None:
            continue
        yield Shape(
            name=model.geom(geom).name or f"geom{geom}",
            body_id=int(model.geom_bodyid[geom]),
            vertices=np.asarray(mesh.vertices, np.float32),
            faces=np.asarray(mesh.faces, np.uint32),
            color=_color(model, int(geom)),
            has_edges=bool(model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_BOX),
            position=model.geom_pos[geom].copy(),
            wxyz=model.geom_quat[geom].copy(),
        )


def _triangles(model: mujoco.MjModel, geom: int) -> trimesh.Trimesh | None:
    size = model.geom_size[geom]
    create = trimesh.creation
    match mujoco.mjtGeom(int(model.geom_type[geom])):
        case mujoco.mjtGeom.mjGEOM_BOX:
            return create.box(extents=2.0 * size)
        case mujoco.mjtGeom.mjGEOM_SPHERE:
            return create.icosphere(subdivisions=2, radius=size[0])
        case mujoco.mjtGeom.mjGEOM_ELLIPSOID:
            return create.icosphere(subdivisions=2).apply_scale(size)
        case mujoco.mjtGeom.mjGEOM_CYLINDER:
            return create.cylinder(size[0], 2.0 * size[1], sections=ROUND)
        case mujoco.mjtGeom.mjGEOM_CAPSULE:
            count = [ROUND, ROUND]
            mesh = create.capsule(2.0 * size[1], size[0], count=count)
            return mesh.apply_translation((0.0, 0.0, -mesh.bounds.mean(axis=0)[2]))
        case mujoco.mjtGeom.mjGEOM_MESH:
            mesh = model.mesh(model.geom_dataid[geom])
            vertex, face = int(mesh.vertadr[0]), int(mesh.faceadr[0])
            return trimesh.Trimesh(
                model.mesh_vert[vertex : vertex + int(mesh.vertnum[0])],
                model.mesh_face[face : face + int(mesh.facenum[0])],
                process=False,
            )
        case _:
            return None


def _color(model: mujoco.MjModel, geom: int) -> tuple[int, int, int]:
    material = model.geom_matid[geom]
    rgba = model.mat_rgba[material] if material >= 0 else model.geom_rgba[geom]
    red, green, blue = (int(255 * c) for c in rgba[:3])
    return red, green, blue
