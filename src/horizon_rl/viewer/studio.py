"""Draw sessions offscreen: robots on a checkered floor, a camera, arrows."""
# MuJoCo's extension modules carry no type stubs.
# pyright: reportAttributeAccessIssue=false

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from horizon_rl.robots import Ground
from horizon_rl.robots.picture import Canvas
from horizon_rl.robots.robot import Robot
from horizon_rl.viewer.state_transfer import show_state

TILE_M = 1.0
TILES = 16
"""Dark tiles along each side of the floor's patch, which moves with the camera."""
TILE_RGBA = (0.83, 0.85, 0.88, 1.0)
ARROW_RGBA = (0.86, 0.15, 0.15, 1.0)
MAX_GEOMS = 2000
PASSIVE = mujoco.mjtCatBit.mjCAT_DYNAMIC


@dataclass(frozen=True, kw_only=True)
class View:
    """Where the camera looks from."""

    lookat_m: tuple[float, float, float]
    azimuth_deg: float = 125.0
    elevation_deg: float = -22.0
    distance_m: float = 2.2
    height_m: float | None = None
    """Height of the picture, to one scale in all its depth; None: in perspective."""
    tiles: bool = True
    """Whether the floor is checkered."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Actor:
    """A robot in a picture."""

    robot: Robot
    state: np.ndarray
    """Integration state."""
    push: np.ndarray | None = None
    """Velocity of a push to be shown as an arrow, world x and y, m/s."""
    fade: float = 0.0
    """0: solid; toward 1 it becomes the floor."""


class Studio:
    """A picture size and its GL context; `close` it when done."""

    def __init__(self, robot: Robot, width: int, height: int):
        """Open a context; the robot's model lends floor and lights."""
        self.width, self.height = width, height
        self._ground = robot.ground
        model = self._model = _stage(robot.model, width, height)
        self._canvas = Canvas(model, width, height)
        self._scene = mujoco.MjvScene(model, maxgeom=MAX_GEOMS)
        self._empty = mujoco.MjData(model)
        mujoco.mj_forward(model, self._empty)  # Places floor and lights.
        self._data: dict[int, tuple[Robot, mujoco.MjData]] = {}
        # Robots stand on the floor, which is drawn once, under all of them.
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SKYBOX] = 0

    def __enter__(self) -> "Studio":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the context back."""
        self._canvas.close()

    def draw(self, actors: Sequence[Actor], view: View) -> np.ndarray:
        """Return an RGB picture, uint8 of shape (height, width, 3)."""
        scene, camera = self._scene, _camera(view)
        globe = self._model.vis.global_
        globe.orthographic = int(view.height_m is not None)
        globe.fovy = view.height_m or 40.0
        statics = mujoco.mjtCatBit.mjCAT_STATIC
        option, model = mujoco.MjvOption(), self._model
        mujoco.mjv_updateScene(model, self._empty, option, None, camera, statics, scene)
        for light in scene.lights[: scene.nlight]:
            if not light.headlight:
                # Shadows are cast around the light: it goes along with the camera.
                light.pos[:] = np.array(view.lookat_m) - 4.0 * light.dir
        if view.tiles:
            add_tiles(scene, self._ground, view.lookat_m)
        for actor in actors:
            self._add(actor)
        return self._canvas.render(scene)

    def _add(self, actor: Actor) -> None:
        robot, scene, first = actor.robot, self._scene, self._scene.ngeom
        _, data = self._data.setdefault(id(robot), (robot, mujoco.MjData(robot.model)))
        show_state(robot, actor.state, data)
        option = mujoco.MjvOption()
        # Imported files may have collision geoms only, which viewers hide, in group 3.
        seen = robot.model.geom_group[robot.model.geom_bodyid > 0]
        option.geomgroup[3] = np.all(seen >= 3)
        mujoco.mjv_addGeoms(
            robot.model, data, option, mujoco.MjvPerturb(), PASSIVE, scene
        )
        for geom in scene.geoms[first : scene.ngeom]:
            geom.rgba[:3] += actor.fade * (0.9 - geom.rgba[:3])
        if actor.push is not None:
            trunk = data.xpos[robot.trunk_body_id]
            add_arrow(scene, trunk + (0.0, 0.0, 0.05), actor.push)


def _stage(model: mujoco.MjModel, width: int, height: int) -> mujoco.MjModel:
    """Return the model with a camera's settings; the simulated one keeps its own."""
    model = copy.copy(model)
    model.vis.global_.offwidth, model.vis.global_.offheight = width, height
    # Half of what a frame costs without a GPU: small pictures get small shadow maps.
    model.vis.quality.shadowsize = 2048 if width > 640 else 1024
    model.vis.quality.offsamples = 4
    model.vis.headlight.ambient[:] = 0.55
    model.vis.headlight.diffuse[:] = 0.3
    model.vis.headlight.specular[:] = 0.05
    model.vis.map.zfar, model.vis.map.znear = 30.0, 0.01
    model.stat.extent = 4.0  # Reach of the shadow map.
    return model


def _camera(view: View) -> mujoco.MjvCamera:
    camera = mujoco.MjvCamera()
    camera.azimuth, camera.elevation = view.azimuth_deg, view.elevation_deg
    camera.distance = view.distance_m
    camera.lookat[:] = view.lookat_m
    return camera


def add_tiles(
    scene: mujoco.MjvScene, ground: Ground, lookat_m: Sequence[float]
) -> None:
    """Checker the floor around a place: on a plain one no motion can be seen."""
    half = (TILE_M / 2.0, TILE_M / 2.0, 5e-4)
    for center in _tiles(lookat_m):
        pos = (*center, float(ground.height_at(np.array(center))))
        _add_geom(scene, mujoco.mjtGeom.mjGEOM_BOX, half, pos, TILE_RGBA)


def _tiles(lookat_m: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Give the centres of the dark tiles around a place; they lie still on the floor."""
    x0, y0 = (int(np.floor(c / TILE_M)) - TILES // 2 for c in lookat_m[:2])
    for i in range(x0, x0 + TILES):
        for j in range(y0, y0 + TILES):
            if (i + j) % 2:
                yield (i + 0.5) * TILE_M, (j + 0.5) * TILE_M


def _add_geom(
    scene: mujoco.MjvScene, kind: int, size, pos, rgba, matrix=None
) -> mujoco.MjvGeom:
    geom = scene.geoms[scene.ngeom]
    frame = np.eye(3).ravel() if matrix is None else matrix
    mujoco.mjv_initGeom(
        geom, kind, np.array(size), np.array(pos), frame, np.array(rgba, np.float32)
    )
    scene.ngeom += 1
    return geom


def add_arrow(scene: mujoco.MjvScene, tip: np.ndarray, push: np.ndarray) -> None:
    """Draw a push as an arrow that ends at the trunk; a hard one is longer."""
    geom = _add_geom(scene, mujoco.mjtGeom.mjGEOM_ARROW, (1, 1, 1), tip, ARROW_RGBA)
    tail = arrow_tail(tip, push)
    mujoco.mjv_connector(geom, mujoco.mjtGeom.mjGEOM_ARROW, 0.03, tail, tip)


def arrow_tail(tip: np.ndarray, push: np.ndarray) -> np.ndarray:
    """Return where the arrow of a push begins: further off for a harder one."""
    return tip - np.array((*push, 0.0)) * (0.2 + 0.3 / max(np.linalg.norm(push), 1e-9))
