"""Draw robots standing, offscreen and to one scale."""

import itertools
import os
import platform
from collections.abc import Sequence
from contextlib import closing
from ctypes.util import find_library
from importlib import import_module
from typing import Any

import mujoco
import numpy as np

from horizon_rl.robots.inspection import stand
from horizon_rl.robots.look_parts import Shape
from horizon_rl.robots.looks import add_shapes, dress
from horizon_rl.robots.robot import Robot
from horizon_rl.support.errors import InputError

INSTALL_GL = (
    "install one, on Debian or Ubuntu: apt-get install libegl1 libgl1-mesa-dri "
    "(or libosmesa6, and set MUJOCO_GL=osmesa)"
)

AZIMUTH_DEG, ELEVATION_DEG = 125.0, -12.0
AZIMUTH, ELEVATION = np.deg2rad((AZIMUTH_DEG, ELEVATION_DEG))
RIGHT = np.array((np.sin(AZIMUTH), -np.cos(AZIMUTH), 0.0))
UP = np.array((0.0, 0.0, np.cos(ELEVATION))) - np.sin(ELEVATION) * np.array(
    (np.cos(AZIMUTH), np.sin(AZIMUTH), 0.0)
)
PLANE = np.stack([RIGHT, UP])
"""The picture's directions to the right and up."""
MARGIN_M = 0.06


def draw_robots(robots: Sequence[Robot], pixels_per_m: int = 600) -> list[np.ndarray]:
    """Draw each robot in keyframe 'stand', on the same ground line and to one scale.

    Returns:
        An RGB image for each robot, uint8 of shape (height, width, 3): all as high as
        the tallest needs, each as wide as it needs.
    """
    dressed = [(*dress(robot), stand(robot)) for robot in robots]
    spans = [_spans_m(shapes, model, data) for shapes, model, data in dressed]
    height = min(span[1, 0] for span in spans), max(span[1, 1] for span in spans)
    return [
        _draw(model, data, shapes, np.array([span[0], height]), pixels_per_m)
        for (shapes, model, data), span in zip(dressed, spans, strict=True)
    ]


def choose_gl() -> str:
    """Name the GL backend to draw with: as MUJOCO_GL says, or what is installed."""
    if chosen := os.environ.get("MUJOCO_GL", "").strip().lower():
        return chosen
    if platform.system() != "Linux":
        return "cgl" if platform.system() == "Darwin" else "glfw"
    for backend, library in (("egl", "EGL"), ("osmesa", "OSMesa")):
        if find_library(library):
            return backend
    raise InputError(
        f"drawing needs an OpenGL library and none was found: {INSTALL_GL}"
    )


class Canvas:
    """An offscreen picture of one size; `close` it when done."""

    def __init__(self, model: mujoco.MjModel, width: int, height: int):
        """Open a GL context for scenes of `model`."""
        self._size = width, height
        self._gl: Any = None
        self._context: Any = None
        backend = choose_gl()
        try:
            self._gl = import_module(f"mujoco.{backend}").GLContext(width, height)
            self._gl.make_current()
            large = mujoco.mjtFontScale.mjFONTSCALE_100
            self._context = mujoco.MjrContext(model, large)
            mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        # Each backend fails in its own way; to a user they all mean the same.
        except Exception as error:
            self.close()
            problem = f"the GL backend '{backend}' does not work here ({error})"
            raise InputError(f"{problem}: {INSTALL_GL}") from error

    def render(self, scene: mujoco.MjvScene) -> np.ndarray:
        """Return an RGB picture, uint8 of shape (height, width, 3)."""
        width, height = self._size
        self._gl.make_current()
        viewport = mujoco.MjrRect(0, 0, width, height)
        mujoco.mjr_render(viewport, scene, self._context)
        pixels = np.empty((height, width, 3), dtype=np.uint8)
        mujoco.mjr_readPixels(pixels, None, viewport, self._context)
        return pixels[::-1]

    def close(self) -> None:
        """Give the context back."""
        if self._gl is not None:
            self._gl.make_current()  # What is freed belongs to it, not to another's.
        for held in (self._context, self._gl):
            if held is not None:
                held.free()
        self._context = self._gl = None


def move_lights(scene: mujoco.MjvScene, place: np.ndarray, distance_m: float) -> None:
    """Put lights at a distance from a place: shadows are cast around them."""
    for light in scene.lights[: scene.nlight]:
        if not light.headlight:
            light.pos[:] = place - distance_m * light.dir / np.linalg.norm(light.dir)


def _spans_m(
    shapes: Sequence[Shape], model: mujoco.MjModel, data: mujoco.MjData
) -> np.ndarray:
    """Return the robot's span with margin in the picture: [right, up][low, high]."""
    robot = model.geom_bodyid > 0
    centers, halves = np.split(model.geom_aabb[robot], 2, axis=1)
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    corners = centers[:, None] + signs * halves[:, None]
    turned = corners @ data.geom_xmat[robot].reshape(-1, 3, 3).swapaxes(1, 2)
    points = [(turned + data.geom_xpos[robot][:, None]).reshape(-1, 3)]
    for shape in shapes:
        own = shape.pos + (signs * shape.extent_m) @ shape.mat.T
        turn = data.xmat[shape.body].reshape(3, 3)
        points.append(data.xpos[shape.body] + own @ turn.T)
    seen = np.concatenate(points) @ PLANE.T
    low, high = seen.min(axis=0) - MARGIN_M, seen.max(axis=0) + MARGIN_M
    return np.stack([low, high], axis=1)


def _draw(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    shapes: Sequence[Shape],
    frame_m: np.ndarray,
    pixels_per_m: int,
) -> np.ndarray:
    """Draw a model, which is changed for it, with shapes on it."""
    width, height = (np.ptp(frame_m, axis=1) * pixels_per_m).astype(int).tolist()
    view = model.vis.global_
    view.orthographic, view.fovy = 1, float(np.ptp(frame_m[1]))
    view.offwidth, view.offheight = width, height
    model.stat.extent = 3.0
    model.vis.map.shadowclip = 0.5  # A small shadow map has finer shadows.
    model.vis.quality.shadowsize, model.vis.quality.offsamples = 4096, 8
    model.vis.headlight.ambient[:] = 0.6
    model.vis.headlight.diffuse[:] = 0.3
    model.vis.headlight.specular[:] = 0.1
    camera = mujoco.MjvCamera()
    camera.azimuth, camera.elevation = AZIMUTH_DEG, ELEVATION_DEG
    camera.distance = 3.0
    camera.lookat[:] = frame_m.mean(axis=1) @ PLANE

    scene = mujoco.MjvScene(model, maxgeom=1000)
    option, everything = mujoco.MjvOption(), mujoco.mjtCatBit.mjCAT_ALL
    # Imported files may have collision geoms only, which viewers hide, in group 3.
    option.geomgroup[3] = np.all(model.geom_group[model.geom_bodyid > 0] >= 3)
    mujoco.mjv_updateScene(model, data, option, None, camera, everything, scene)
    add_shapes(scene, data, shapes)
    move_lights(scene, camera.lookat, 1.3)
    with closing(Canvas(model, width, height)) as canvas:
        return canvas.render(scene)
