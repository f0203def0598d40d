"""Draw sessions offscreen: a robot on a checkered floor, a camera, arrows."""
# MuJoCo's extension modules carry no type stubs.
# pyright: reportAttributeAccessIssue=false

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from horizon_rl.robots import Ground
from horizon_rl.robots.picture import Canvas
from horizon_rl.robots.robot import Robot
from horizon_rl.viewer.state_transfer import show_state

TILE_M = 1.0
TILES = 16
"""Tiles along each side of the floor's patch, which moves with the camera."""
TILE_RGBA = (0.83, 0.85, 0.88, 1.0)
ARROW_RGBA = (0.86, 0.15, 0.15, 1.0)
ARROW_ABOVE_M = np.array((0.0, 0.0, 0.05))
"""Where a push is drawn, from the trunk's origin."""
MAX_GEOMS = 2000
PALEST = 0.7
"""How far the first of several states fades toward the floor."""


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


class Studio:
    """Draws one robot, in pictures of one size; leaving it gives its GL context back."""

    def __init__(self, robot: Robot, width: int, height: int):
        """Open a GL context."""
        self._robot = robot
        self._model = model = _stage(robot.model, width, height)
        self._data = mujoco.MjData(model)
        self._canvas = Canvas(model, width, height)
        self._scene = mujoco.MjvScene(model, maxgeom=MAX_GEOMS)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SKYBOX] = 0
        self._option = mujoco.MjvOption()
        # Imported files may have collision geoms only, which viewers hide, in group 3.
        own = model.geom_group[model.geom_bodyid > 0]
        self._option.geomgroup[3] = np.all(own >= 3)

    def __enter__(self) -> "Studio":
        return self

    def __exit__(self, *_: object) -> None:
        self._canvas.close()

    def draw(
        self, states: Sequence[np.ndarray], view: View, push: np.ndarray | None = None
    ) -> np.ndarray:
        """Return an RGB picture, uint8 of shape (height, width, 3).

        Args:
            states: Integration states of the robot; the last is solid, those before it
                are paler.
            view: Where from.
            push: Velocity of a push on the last, world x and y, m/s, drawn as an arrow.
        """
        model, data, scene, camera = self._model, self._data, self._scene, _camera(view)
        model.vis.global_.orthographic = int(view.height_m is not None)
        model.vis.global_.fovy = view.height_m or 40.0
        parts = mujoco.mjtCatBit
        show_state(self._robot, states[-1], data)
        mujoco.mj_camlight(model, data)
        mujoco.mjv_updateScene(
            *(model, data, self._option, None, camera, parts.mjCAT_STATIC, scene)
        )
        for light in scene.lights[: scene.nlight]:
            if not light.headlight:
                # Shadows are cast around the light: it goes along with the camera.
                light.pos[:] = np.array(view.lookat_m) - 4.0 * light.dir
        if view.tiles:
            add_tiles(scene, self._robot.ground, view.lookat_m)
        for number, state in enumerate(states, start=1):
            first, fade = scene.ngeom, PALEST * (1.0 - number / len(states))
            show_state(self._robot, state, data)
            mujoco.mjv_addGeoms(
                *(model, data, self._option, mujoco.MjvPerturb()),
                *(parts.mjCAT_DYNAMIC, scene),
            )
            for geom in scene.geoms[first : scene.ngeom]:
                geom.rgba[:3] += fade * (0.9 - geom.rgba[:3])
        if push is not None:
            add_arrow(scene, data.xpos[self._robot.trunk_body_id], push)
        return np.ascontiguousarray(self._canvas.render(scene))


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
    first = np.floor(np.array(lookat_m[:2]) / TILE_M).astype(int) - TILES // 2
    for tile in first + np.array(list(np.ndindex(TILES, TILES))):
        if tile.sum() % 2:
            center = (tile + 0.5) * TILE_M
            pos = (*center, float(ground.height_at(center)))
            _add_geom(scene, mujoco.mjtGeom.mjGEOM_BOX, half, pos, TILE_RGBA)


def add_arrow(scene: mujoco.MjvScene, trunk: np.ndarray, push: np.ndarray) -> None:
    """Draw a push as an arrow that ends at the trunk; a hard one is longer."""
    kind = mujoco.mjtGeom.mjGEOM_ARROW
    geom = _add_geom(scene, kind, (1, 1, 1), trunk, ARROW_RGBA)
    mujoco.mjv_connector(geom, kind, 0.03, *arrow_ends(trunk, push))


def arrow_ends(trunk: np.ndarray, push: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return tail and tip of a push's arrow: the tail is further off for a harder one."""
    tip = trunk + ARROW_ABOVE_M
    length_s = 0.2 + 0.3 / max(np.linalg.norm(push), 1e-9)
    return tip - length_s * np.array((*push, 0.0)), tip


def _add_geom(scene: mujoco.MjvScene, kind: int, size, pos, rgba) -> mujoco.MjvGeom:
    geom, rgba = scene.geoms[scene.ngeom], np.array(rgba, np.float32)
    mujoco.mjv_initGeom(
        geom, kind, np.array(size), np.array(pos), np.eye(3).ravel(), rgba
    )
    scene.ngeom += 1
    return geom
