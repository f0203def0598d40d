"""What presets look like: shapes that are drawn and never simulated.

A model has what touches the ground and little more. Viewers draw these shapes in its
place: rounded trunks that reach the hips, heads, covers, colours by maker. They are
placed by the model's own fields, so that a body whose parameters changed is drawn so.
"""

import copy
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any

import mujoco
import numpy as np

from horizon_rl.robots.look_parts import (
    FEATURES,
    Look,
    Shape,
    Trunk,
    add_leg,
    add_torso,
    to_rgba,
)
from horizon_rl.robots.morphology import LEG_NAMES
from horizon_rl.robots.robot import Robot
from horizon_rl.support.records import decode

PLAIN = "plain"
"""The look of bodies that are no preset."""


def is_dressed(robot: Robot) -> bool:
    """Tell whether a robot has a look: imported files bring their own."""
    names = {robot.model.geom(i).name for i in range(robot.model.ngeom)}
    return {"trunk", "visor"} <= names


def dress(robot: Robot) -> tuple[list[Shape], mujoco.MjModel]:
    """Return what is drawn on a robot, and its model in the look's colours.

    The model is a copy for drawing: what the shapes cover is in a hidden group.
    """
    model = copy.copy(robot.model)
    if not is_dressed(robot):
        return [], model
    look = _looks().get(robot.name.split("+")[0], _looks()[PLAIN])
    for name in ("trunk", "visor", *(f"{leg}_hip" for leg in LEG_NAMES)):
        model.geom(name).group[0] = 4
    colors = {"thigh": look.thigh, "shank": look.shank, "shin": look.shank}
    names = {model.geom(i).name for i in range(model.ngeom)}
    for leg, (part, color) in product(LEG_NAMES, colors.items()):
        if f"{leg}_{part}" in names:  # There are shins only on rough ground.
            model.geom(f"{leg}_{part}").rgba[:] = to_rgba(color)
    trunk = _measure(model)
    shapes = [*add_torso(trunk, look)]
    for name in look.features:
        shapes += FEATURES[name](trunk, look)
    for leg in LEG_NAMES:
        shapes += add_leg(model, leg, look)
    return shapes, model


def add_shapes(
    scene: mujoco.MjvScene, data: mujoco.MjData, shapes: Iterable[Shape]
) -> None:
    """Add shapes to a scene, where their bodies are."""
    for shape in shapes:
        geom, turn = scene.geoms[scene.ngeom], data.xmat[shape.body].reshape(3, 3)
        place = data.xpos[shape.body] + turn @ shape.pos
        rgba, mat = shape.rgba.astype(np.float32), (turn @ shape.mat).ravel()
        mujoco.mjv_initGeom(geom, shape.kind, shape.size, place, mat, rgba)
        geom.category = mujoco.mjtCatBit.mjCAT_DYNAMIC  # It casts a shadow.
        scene.ngeom += 1


@cache
def _looks() -> dict[str, Look]:
    text = files("horizon_rl.robots").joinpath("looks.toml").read_text("utf-8")
    found: dict[str, Any] = tomllib.loads(text)
    return {name: decode(Look, look) for name, look in found.items()}


def _measure(model: mujoco.MjModel) -> Trunk:
    box, (front, side, _) = model.geom("trunk"), model.body("FL_hip").pos.tolist()
    rear = float(model.body("RL_hip").pos[0])
    half_y = max(box.size[1], 0.95 * abs(side))
    reach = 0.35 * (front - rear) / 2.0
    nose = max(float(box.pos[0] + box.size[0]), front + 0.5 * reach)
    half = np.array((half_y, float(box.size[2])))
    return Trunk(model.body("trunk").id, front, rear, nose, half, float(box.pos[2]))
