"""Robots in the browser's scene: meshes on frames that follow a session."""

from collections.abc import Iterable
from typing import Any

import mujoco
import numpy as np
from mujoco import mjtGeom

from horizon_rl.robots import Robot
from horizon_rl.robots.look_parts import Shape
from horizon_rl.robots.looks import dress
from horizon_rl.support.errors import needs_extra
from horizon_rl.viewer.body import read_state
from horizon_rl.viewer.session import Session
from horizon_rl.viewer.studio import arrow_ends

with needs_extra("viewer"):
    import trimesh
    import viser
    from trimesh import creation

ROUND = 20
"""Segments of a circle."""
SMOOTHING = 0.1
"""Share of the way to the ground's height that the view rises in a frame."""


class Figure:
    """A session's robot, and the push on it, at a fixed place of the scene."""

    def __init__(
        self, server: viser.ViserServer, session: Session, root: str, y_m: float
    ):
        """Add what does not change; `show` adds the robot.

        Args:
            server: Of the page.
            session: Whose robot.
            root: Name of its part of the scene.
            y_m: How far to the left of the middle it is shown.
        """
        self._server, self._session, self._root = server, session, root
        self._aside = np.array((0.0, y_m, 0.0))
        self._bodies: dict[int, viser.FrameHandle] = {}
        self._robot: Robot | None = None
        self._level_m = float(session.place[2])
        self._name = ""
        self._label: viser.LabelHandle | None = None
        self._arrow = server.scene.add_arrows(
            f"{root}-push",
            np.zeros((1, 2, 3), np.float32),
            (220, 40, 40),
            shaft_radius=0.02,
            head_radius=0.05,
            head_length=0.1,
            visible=False,
        )

    def show_name(self) -> None:
        """Write above the robot whose it is, and whether it fell."""
        session = self._session
        name = f"{session.policy.name}{' (fallen)' if session.fallen else ''}"
        if name == self._name and self._label is not None:
            return
        if self._label is not None:
            self._label.remove()
        place = self._aside + (0.0, 0.0, 1.7 * session.robot.standing_height_m)
        self._name = name
        self._label = self._server.scene.add_label(
            f"{self._root}-name", name, position=tuple(place)
        )

    def show(self) -> np.ndarray:
        """Show the robot as it is now; a new body takes the last one's place.

        Returns:
            The place in the world that is shown at the scene's origin.
        """
        robot, state = self._session.robot, self._session.state
        if robot is not self._robot:
            self._robot, self._data = robot, None
            for frame in self._bodies.values():
                frame.remove()
            self._bodies = add_robot(self._server.scene, robot, self._root)
        self._data = data = read_state(robot, state, self._data)
        trunk = data.xpos[robot.trunk_body_id]
        # The robot stays in its place and the floor goes by: cameras are the user's.
        # They climb stairs smoothly.
        ground_m = float(robot.ground.height_at(trunk[:2]))
        self._level_m += SMOOTHING * (ground_m - self._level_m)
        origin = np.array((*trunk[:2], self._level_m)) - self._aside
        for body, frame in self._bodies.items():
            frame.position = data.xpos[body] - origin
            frame.wxyz = data.xquat[body]
        push = self._session.shown_push
        self._arrow.visible = push is not None
        if push is not None:
            ends = arrow_ends(trunk - origin, push)
            self._arrow.points = np.array([ends], np.float32)
        return origin


def add_robot(
    scene: viser.SceneApi, robot: Robot, root: str
) -> dict[int, viser.FrameHandle]:
    """Add what a viewer would show of a robot; return its bodies' frames by their ids.

    The floor is left out.
    """
    shapes, model = dress(robot)
    moving = np.flatnonzero(model.geom_bodyid > 0)
    shown = moving[model.geom_group[moving] < 3]
    # Imported files may have collision geoms only, in the group that viewers hide.
    geoms = list(map(int, shown if len(shown) else moving))
    seen = {*model.geom_bodyid[geoms].tolist(), *(shape.body for shape in shapes)}
    bodies = {
        body: scene.add_frame(f"{root}/{body}", show_axes=False)
        for body in sorted(seen)
    }
    for geom in geoms:
        mesh, body = _triangles(model, geom), int(model.geom_bodyid[geom])
        material = model.geom_matid[geom]
        rgba = model.mat_rgba[material] if material >= 0 else model.geom_rgba[geom]
        scene.add_mesh_simple(
            f"{root}/{body}/geom{geom}",
            np.asarray(mesh.vertices, np.float32),
            np.asarray(mesh.faces, np.uint32),
            color=(255 * rgba[:3]).astype(np.uint8),
            position=model.geom_pos[geom].copy(),
            wxyz=model.geom_quat[geom].copy(),
            flat_shading=bool(model.geom_type[geom] == mjtGeom.mjGEOM_BOX),
        )
    for (body, color), mesh in _merge(shapes).items():
        scene.add_mesh_simple(
            f"{root}/{body}/shape{bytes(color).hex()}",
            np.asarray(mesh.vertices, np.float32),
            np.asarray(mesh.faces, np.uint32),
            color=color,
            flat_shading=True,
        )
    return bodies


def _merge(
    shapes: Iterable[Shape],
) -> dict[tuple[int, tuple[int, int, int]], trimesh.Trimesh]:
    """Make one mesh of all shapes of a colour on a body: few objects draw fast."""
    parts: dict[tuple[int, tuple[int, int, int]], list[trimesh.Trimesh]] = {}
    for shape in shapes:
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = shape.mat, shape.pos
        mesh = _solid(shape.kind, shape.size).apply_transform(pose)
        red, green, blue = (255 * shape.rgba[:3]).astype(int).tolist()
        parts.setdefault((shape.body, (red, green, blue)), []).append(mesh)
    # Any: of its stubs a union may be something else than a mesh.
    join: Any = trimesh.util.concatenate
    return {key: join(meshes) for key, meshes in parts.items()}


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
    return _solid(kind, size)


def _solid(kind: int, size: np.ndarray) -> trimesh.Trimesh:
    """Return a solid of MuJoCo's, around its own centre."""
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
