"""Draw sessions offscreen: a robot on a checkered floor, a camera, arrows."""

from collections.abc import Sequence
from math import isinf

import mujoco
import numpy as np

from horizon_rl.robots import Ground
from horizon_rl.robots.looks import add_shapes, dress
from horizon_rl.robots.picture import Canvas, move_lights
from horizon_rl.robots.robot import Robot
from horizon_rl.viewer.body import read_state

TILE_M = 1.0
TILES = 16
"""Tiles along each side of the floor's patch, which moves with the camera."""
TILE_RGBA = (0.83, 0.85, 0.88, 1.0)
ARROW_RGBA = (0.86, 0.15, 0.15, 1.0)
ARROW_ABOVE_M = np.array((0.0, 0.0, 0.05))
"""Where a push is drawn, from the trunk's origin."""
MAX_GEOMS = 2000
DISTANCE_LEGS = 4.2
"""Camera to robot, in lengths of its leg."""
PALEST = 0.7
"""How far the first of several states fades toward the floor."""


class Studio(Canvas):
    """Draws one robot, in pictures of one size; `close` it when done."""

    def __init__(
        self, robot: Robot, width: int, height: int, shown_m: float | None = None
    ):
        """Open a GL context.

        Args:
            robot: Whom to draw.
            width: Of the pictures, in pixels.
            height: Of the pictures, in pixels.
            shown_m: What a picture shows from bottom to top, to one scale in all its
                depth; None: in perspective.
        """
        self._robot = robot
        self._shapes, self._model = dress(robot)
        self._data = mujoco.MjData(self._model)
        _set_stage(self._model.vis, width, height)
        self._model.vis.global_.orthographic = int(shown_m is not None)
        self._model.vis.global_.fovy = shown_m or 40.0
        self._model.stat.extent = 4.0
        # A small shadow map has finer shadows; a wide picture needs a large one.
        self._model.vis.map.shadowclip = 0.5 if shown_m is None else 1.0
        self._light_m = 1.8 if shown_m is None else 4.0
        super().__init__(self._model, width, height)
        self._scene = mujoco.MjvScene(self._model, maxgeom=MAX_GEOMS)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
        # A plane hides the sky, and a height field casts shadows on itself, in stripes.
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SKYBOX] = not robot.ground.is_plane
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = robot.ground.is_plane
        self._option = mujoco.MjvOption()
        # Imported files may have collision geoms only, which viewers hide, in group 3.
        own = self._model.geom_group[self._model.geom_bodyid > 0]
        self._option.geomgroup[3] = np.all(own >= 3)

    def draw(
        self,
        states: Sequence[np.ndarray],
        camera: mujoco.MjvCamera,
        push: np.ndarray | None = None,
        tiles: bool = True,
    ) -> np.ndarray:
        """Return an RGB picture, uint8 of shape (height, width, 3).

        Args:
            states: Integration states of the robot; the last is solid, those before it
                are paler.
            camera: Where from: see `look_at`.
            push: Velocity of a push on the last, world x and y, m/s, drawn as an arrow.
            tiles: Whether the floor is checkered.
        """
        model, data, scene = self._model, self._data, self._scene
        parts = mujoco.mjtCatBit
        read_state(self._robot, states[-1], data)
        mujoco.mj_camlight(model, data)
        mujoco.mjv_updateScene(
            *(model, data, self._option, None, camera, parts.mjCAT_STATIC, scene)
        )
        move_lights(scene, camera.lookat, self._light_m)
        if tiles:
            add_floor(scene, self._robot, camera.lookat)
        for number, state in enumerate(states, start=1):
            first, fade = scene.ngeom, PALEST * (1.0 - number / len(states))
            read_state(self._robot, state, data)
            perturb = mujoco.MjvPerturb()
            mujoco.mjv_addGeoms(
                *(model, data, self._option, perturb, parts.mjCAT_DYNAMIC, scene)
            )
            add_shapes(scene, data, self._shapes)
            for geom in scene.geoms[first : scene.ngeom]:
                geom.rgba[:3] += fade * (0.9 - geom.rgba[:3])
        if push is not None:
            add_arrow(scene, data.xpos[self._robot.trunk_body_id], push)
        return np.ascontiguousarray(self.render(scene))


def look_at(
    place_m: Sequence[float],
    distance_m: float,
    azimuth_deg: float = 125.0,
    elevation_deg: float = -22.0,
) -> mujoco.MjvCamera:
    """Return a camera that looks at a place, x, y, z."""
    camera = mujoco.MjvCamera()
    camera.lookat[:], camera.distance = place_m, distance_m
    camera.azimuth, camera.elevation = azimuth_deg, elevation_deg
    return camera


def side_view(robot: Robot, place: np.ndarray, aspect: float) -> mujoco.MjvCamera:
    """Look from the side at a robot that is at a place, [3] on the ground, m.

    A narrow picture (`aspect` is width over height) shows as much as a wide one, from
    further away.
    """
    x, y, ground_m = place.tolist()
    distance_m = DISTANCE_LEGS * max(1.0, 1.25 / aspect) * robot.leg_length_m
    return look_at((x, y, ground_m + 0.7 * robot.standing_height_m), distance_m)


def _set_stage(vis: mujoco.MjVisual, width: int, height: int) -> None:
    vis.global_.offwidth, vis.global_.offheight = width, height
    # Half of what a frame costs without a GPU: small pictures get small shadow maps.
    vis.quality.shadowsize = 2048 if width > 640 else 1024
    vis.quality.offsamples = 4
    vis.headlight.ambient[:] = 0.55
    vis.headlight.diffuse[:] = 0.3
    vis.headlight.specular[:] = 0.05
    vis.map.zfar, vis.map.znear = 30.0, 0.01


def add_floor(scene: mujoco.MjvScene, robot: Robot, lookat_m: np.ndarray) -> None:
    """Let the ground go on around a place, and show how it goes by."""
    if isinf(robot.ground.period_m):
        _add_tiles(scene, robot.ground, lookat_m)
    else:
        _repeat_ground(scene, robot)


def _repeat_ground(scene: mujoco.MjvScene, robot: Robot) -> None:
    """Draw the height field of the robot's patch in the neighbouring periods, too."""
    floor, kind = robot.model.geom("floor"), mujoco.mjtGeom.mjGEOM_HFIELD
    look = robot.model.mat(int(floor.matid[0]))
    around = [np.array((x, y, 0.0)) for x in (-1, 0, 1) for y in (-1, 0, 1) if x or y]
    for step in around:
        pos = floor.pos + robot.ground.period_m * step
        geom = _add_geom(scene, kind, floor.size, pos, look.rgba)
        geom.dataid, geom.matid = int(floor.dataid[0]), look.id
        geom.specular = float(look.specular[0])
        geom.shininess = float(look.shininess[0])


def _add_tiles(scene: mujoco.MjvScene, ground: Ground, lookat_m: np.ndarray) -> None:
    """Checker the floor around a place: on a plain one no motion can be seen."""
    half = (TILE_M / 2.0, TILE_M / 2.0, 5e-4)
    first = np.floor(lookat_m[:2] / TILE_M).astype(int) - TILES // 2
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
