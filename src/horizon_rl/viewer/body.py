"""The body of a session: a robot, interventions, a payload; changes in mid-stride."""

import copy
from dataclasses import dataclass, replace
from functools import lru_cache

import mujoco
import numpy as np

from horizon_rl.physics import Pool
from horizon_rl.physics.stance import reach_down
from horizon_rl.robots import (
    FLAT,
    INTERVENTIONS,
    Ground,
    Robot,
    build_robot,
    load_body,
    load_robot,
    preset_names,
)
from horizon_rl.robots.bodies import hang_balls
from horizon_rl.robots.terrain import Terrain
from horizon_rl.support.errors import InputError

SHAPE_FIELDS = (
    *("body_pos", "geom_dataid", "geom_pos", "geom_size", "jnt_range", "site_pos"),
)
"""mjModel fields that say how a robot and its ground look, and how far joints go."""


@dataclass(frozen=True, kw_only=True)
class BodyVariant:
    """A body by name, and changes to it that a user makes by hand."""

    robot: str
    """Preset, or MJCF file by its path."""
    interventions: tuple[str, ...] = ()
    """Of `INTERVENTIONS`, in that order."""
    payload_kg: float = 0.0
    """Mass of a ball that hangs below the trunk; 0: none."""
    payload_x_m: float = 0.0
    """How far in front of the trunk's origin it hangs."""

    @property
    def name(self) -> str:
        """As the command line writes it: go2+stilts."""
        return "+".join((self.robot, *self.interventions))

    def build(self, ground: Ground = FLAT) -> Robot:
        """Return the robot on a ground, ready to simulate."""
        if self.payload_kg:
            return _build_loaded(self, ground)
        return load_robot(self.name, ground)

    def with_intervention(self, name: str, present: bool) -> "BodyVariant":
        """Add or take away an intervention."""
        chosen = {*self.interventions} - {name} | ({name} if present else set())
        order = tuple(key for key in INTERVENTIONS if key in chosen)
        return replace(self, interventions=order)


def parse_body(name: str) -> BodyVariant:
    """Read a preset with interventions (go2+stilts), or the path of an MJCF file."""
    load_robot(name)  # Refuses what is none of these.
    robot, *interventions = name.split("+")
    if robot in preset_names():
        return BodyVariant(robot=robot, interventions=tuple(interventions))
    return BodyVariant(robot=name)


@lru_cache(maxsize=32)  # A slider makes many.
def _build_loaded(body: BodyVariant, ground: Ground) -> Robot:
    if body.robot not in preset_names():
        raise InputError(f"{body.robot}: a payload hangs below presets only")
    ball = body.payload_kg, body.payload_x_m
    return build_robot(hang_balls(load_body(body.name), ball), ground)


def reshape_robot(robot: Robot, pool: Pool, shown: Robot | None) -> Robot:
    """Return the robot as the pool's one instance has it: its shape, and its ground.

    Args:
        robot: As it is built.
        pool: Its physics; a parameter may make its calves longer.
        shown: What it is shown as so far, returned if it looks the same.
    """
    ground = robot.ground
    if isinstance(ground, Terrain):
        ground = replace(ground, patch=int(pool.patch[0]))
    names = [name for name in SHAPE_FIELDS if name in pool.fields]
    shape = {name: pool.fields[name][0] for name in names}
    for known in filter(None, (shown, robot)):
        fields = {name: getattr(known.model, name) for name in names}
        same = all(np.array_equal(fields[name], shape[name]) for name in names)
        if same and known.name == robot.name and known.ground == ground:
            return known
    model = copy.copy(robot.model)
    for name, values in shape.items():
        getattr(model, name)[:] = values
    return replace(robot, model=model, ground=ground)


def transfer_state(
    old: Robot, before: mujoco.MjData, new: Robot
) -> tuple[np.ndarray, np.ndarray]:
    """Return qpos and qvel of `new` in the pose that `old` is in.

    Joints of one name keep angle and speed, within the new ranges; others, such as a
    fresh payload's, start as the standing robot has them. The lowest point stays as far
    from the ground as it was: longer legs lift the trunk.

    Args:
        old: What is simulated so far.
        before: Its state.
        new: What goes on in its place.
    """
    after = mujoco.MjData(new.model)
    mujoco.mj_resetDataKeyframe(new.model, after, new.model.key("stand").id)
    names = [new.model.joint(i).name for i in range(new.model.njnt)]
    known = {old.model.joint(i).name for i in range(old.model.njnt)}
    for name in filter(known.__contains__, names):
        joint = after.joint(name)
        joint.qpos[:], joint.qvel[:] = before.joint(name).qpos, before.joint(name).qvel
        kind = new.model.joint(name)
        if kind.limited[0]:
            angle = np.clip(joint.qpos, *kind.range)
            joint.qvel[angle != joint.qpos] = 0.0
            joint.qpos[:] = angle
    mujoco.mj_kinematics(new.model, after)
    after.qpos[2] += _clearance_m(old, before) - _clearance_m(new, after)
    return after.qpos.copy(), after.qvel.copy()


def read_state(
    robot: Robot, state: np.ndarray, data: mujoco.MjData | None = None
) -> mujoco.MjData:
    """Write an integration state into `data`, positions of all bodies computed."""
    data = data or mujoco.MjData(robot.model)
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    mujoco.mj_setState(robot.model, data, state, kind)
    mujoco.mj_kinematics(robot.model, data)
    # Cameras and shadows go by it.
    mujoco.mj_comPos(robot.model, data)
    return data


def _clearance_m(robot: Robot, data: mujoco.MjData) -> float:
    """Return how high above the ground the lowest point that can touch it is."""
    model = robot.model
    lowest = np.inf
    for geom in np.flatnonzero(model.geom_conaffinity == 1):
        size, up = model.geom_size[geom][None], data.geom_xmat[geom][None, 6:]
        reach = reach_down(model, int(geom), size, up)[0]
        lowest = min(lowest, robot.ground.above(data.geom_xpos[geom]) - reach)
    return float(lowest)
