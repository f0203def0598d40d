"""The page in the browser: the scene, and the loop that moves the robot in it.

One thread simulates. What a user does on the page arrives on others, so it is put into
a queue and done between two steps: a session never changes in the middle of one.
"""
# MuJoCo's extension modules carry no type stubs.
# pyright: reportAttributeAccessIssue=false

import socket
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from queue import SimpleQueue
from secrets import token_urlsafe

import mujoco
import numpy as np
from mujoco import mjtGeom

from horizon_rl.physics import cores_for_physics
from horizon_rl.robots import Ground, Robot
from horizon_rl.robots.terrain import Terrain
from horizon_rl.support.addresses import page_url
from horizon_rl.support.errors import InputError, needs_extra
from horizon_rl.viewer.body import read_state
from horizon_rl.viewer.guard import guarded
from horizon_rl.viewer.session import Pace, Session
from horizon_rl.viewer.studio import arrow_ends

with needs_extra("viewer"):
    import trimesh
    import viser
    from trimesh import creation

FRAME_S = 1.0 / 50.0
READOUT_S = 0.2
ROUND = 20
"""Segments of a circle."""
SKY = (232, 238, 245)
GROUND = (205, 210, 218)
SMOOTHING = 0.1
"""Share of the way to the ground's height that the view rises in a frame."""


class Page:
    """A session in the browser."""

    def __init__(self, session: Session, host: str, port: int):
        """Serve at once; `run` moves the robot."""
        self.session, self.pace = session, Pace()
        _check_address(host)
        token = token_urlsafe(16)
        # It prints a banner; who starts a page says where it is in their own way.
        with redirect_stdout(StringIO()), guarded(token, host):
            self.server = viser.ViserServer(host, port, "horizon play", verbose=False)
        self.port = self.server.get_port()
        self.url = page_url(host, self.port, f"{token}/")
        """Where it is; whoever knows it can drive."""
        self._todo: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.on_readout: Callable[[], None] = lambda: None
        """Called a few times a second, between two steps."""
        self._bodies: dict[int, viser.FrameHandle] = {}
        self._robot: Robot | None = None
        self._stopped = False
        self._relief: viser.MeshHandle | None = None
        self._level_m = float(session.place[2])
        self._set_stage()
        self.show()

    def do(self, work: Callable[[], None]) -> None:
        """Have something done between two steps; from any thread."""
        self._todo.put(work)

    def stop(self) -> None:
        """End `run`; from any thread."""
        self._stopped = True

    def run(self) -> None:
        """Simulate in real time until stopped."""
        last_readout = 0.0
        with cores_for_physics(self.session.env.backend):
            while not self._stopped:
                began = time.perf_counter()
                while not self._todo.empty():
                    self._todo.get()()
                if self.pace.advance(self.session):
                    self.show()
                if began - last_readout >= READOUT_S:
                    last_readout = began
                    self.on_readout()
                time.sleep(max(0.001, FRAME_S - (time.perf_counter() - began)))
        self.server.stop()

    def tell(self, title: str, body: str) -> None:
        """Show everybody a note, for a while."""
        for client in self.server.get_clients().values():
            client.add_notification(title, body, auto_close_seconds=6.0)

    def show(self) -> None:
        """Show the session's robot as it is now; a new body takes the last one's place."""
        robot, state = self.session.robot, self.session.state
        if robot is not self._robot:
            self._robot, self._data = robot, None
            with self.server.atomic():
                for frame in self._bodies.values():
                    frame.remove()
                self._bodies = add_robot(self.server.scene, robot.model)
                self._lay(robot.ground)
        self._data = data = read_state(robot, state, self._data)
        trunk = data.xpos[robot.trunk_body_id]
        # The robot stays in the middle and the floor goes by: cameras are the user's.
        # They climb stairs smoothly.
        ground_m = float(robot.ground.height_at(trunk[:2]))
        self._level_m += SMOOTHING * (ground_m - self._level_m)
        origin = np.array((*trunk[:2], self._level_m))
        push = self.session.shown_push
        with self.server.atomic():
            for body, frame in self._bodies.items():
                frame.position = data.xpos[body] - origin
                frame.wxyz = data.xquat[body]
            self._floor.position = (*-(trunk[:2] % 1.0), 0.0)
            if self._relief:
                self._relief.position = -origin
            self._arrow.visible = push is not None
            if push is not None:
                ends = arrow_ends(trunk - origin, push)
                self._arrow.points = np.array([ends], np.float32)

    def _lay(self, ground: Ground) -> None:
        """Show the ground: a plane's grid, or the relief of a patch."""
        self._floor.visible = ground.is_plane
        if self._relief:
            self._relief.remove()
            self._relief = None
        if isinstance(ground, Terrain):
            corners, faces = relief(ground)
            self._relief = self.server.scene.add_mesh_simple(
                "/ground",
                corners.astype(np.float32),
                faces.astype(np.uint32),
                color=GROUND,
                flat_shading=True,
            )

    def _set_stage(self) -> None:
        server, scene = self.server, self.server.scene
        server.gui.configure_theme(
            control_width="large", show_logo=False, show_share_button=False
        )
        server.gui.main_panel.dock_right()
        scene.set_up_direction("+z")
        scene.set_background_image(np.full((2, 2, 3), SKY, np.uint8))
        self._floor = scene.add_grid(
            "/floor",
            width=24.0,
            height=24.0,
            cell_size=0.5,
            section_size=1.0,
            cell_color=(225, 228, 233),
            section_color=(165, 172, 182),
            plane_color=(250, 250, 252),
            plane_opacity=1.0,
            shadow_opacity=0.25,
        )
        self._arrow = scene.add_arrows(
            "/push",
            np.zeros((1, 2, 3), np.float32),
            (220, 40, 40),
            shaft_radius=0.02,
            head_radius=0.05,
            head_length=0.1,
            visible=False,
        )
        size = self.session.robot.leg_length_m
        server.initial_camera.position = (3.0 * size, 3.0 * size, 1.9 * size)
        server.initial_camera.look_at = (0.0, 0.0, 0.5 * size)


def _check_address(host: str) -> None:
    """Refuse an address that is not this machine's: viser would wait for ever."""
    try:
        family, *_, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind(address)
    except OSError as error:
        raise InputError(
            f"cannot serve on '{host}': {error.strerror or error}. Accepted: an address "
            "of this machine, as 127.0.0.1 or 0.0.0.0"
        ) from error


def relief(ground: Terrain) -> tuple[np.ndarray, np.ndarray]:
    """Return corners [n, 3] and triangles [m, 3] of a ground's patch, three periods wide."""
    reach = 1.5 * ground.period_m
    cells = ground.patches[ground.patch][0].cell_m
    x, y = (np.arange(-reach, reach + cell / 2.0, cell) for cell in cells)
    places = np.stack(np.meshgrid(x, y), axis=-1)
    heights = ground.height_at(places)
    number = np.arange(heights.size).reshape(heights.shape)
    near, ahead = number[:-1, :-1].ravel(), number[:-1, 1:].ravel()
    aside, far = number[1:, :-1].ravel(), number[1:, 1:].ravel()
    faces = np.stack([near, ahead, far, near, far, aside], axis=1).reshape(-1, 3)
    corners = np.concatenate([places, heights[..., None]], axis=-1).reshape(-1, 3)
    return corners, faces


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
