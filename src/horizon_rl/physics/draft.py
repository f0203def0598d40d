"""A pool in the making: the numbers in which worlds differ, one row per instance."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from horizon_rl.robots import Robot
from horizon_rl.support.errors import InputError

BODY_FIELDS = (
    *("body_inertia", "body_ipos", "body_iquat", "body_mass", "body_pos"),
    *("dof_armature", "geom_aabb", "geom_pos", "geom_rbound", "geom_size"),
    *("jnt_range", "site_pos"),
)
"""mjModel fields that differ from body to body."""

EFFECT_FIELDS = ("geom_friction", "geom_solref", "actuator_gainprm", "actuator_biasprm")
"""Further mjModel fields that parameters change."""

DERIVED_FIELDS = ("body_invweight0", "body_subtreemass", "dof_invweight0")
"""mjModel fields that MuJoCo computes from the others (mj_setConst) and uses in a step.
It computes more (actuator_acc0, dof_M0, dof_length), for muscles, compilation and sleep:
left out, since every field of a world is copied before every physics step."""

WORLD_FIELDS = BODY_FIELDS + EFFECT_FIELDS + DERIVED_FIELDS
"""mjModel fields that have a value of their own in each world of every pool. A pool has
further ones where an effect changes them: who has no such parameter pays nothing."""

SHARED_FIELDS = (
    *("actuator_gear", "body_gravcomp", "body_parentid", "body_quat", "dof_damping"),
    *("dof_frictionloss", "geom_bodyid", "geom_condim", "geom_conaffinity"),
    *("geom_dataid", "geom_margin", "geom_quat", "geom_solimp", "geom_type"),
    *("jnt_axis", "jnt_limited", "jnt_margin", "jnt_pos", "jnt_solimp", "jnt_solref"),
    *("jnt_stiffness", "jnt_type", "mesh_vert", "qpos0", "qpos_spring"),
)
"""mjModel fields that move a robot and have one value for all worlds of a batch, unless
an effect changes them."""


class FieldRows(dict[str, np.ndarray]):
    """mjModel fields by name, [n, ...] each, as compiled until an effect writes to them.

    A field that worlds share gets its rows when an effect first asks for it.
    """

    def __init__(self, robots: Sequence[Robot], body_ids: np.ndarray):
        super().__init__()
        self._models = [robot.model for robot in robots]
        self._body_ids = body_ids

    def __missing__(self, name: str) -> np.ndarray:
        compiled = np.stack([getattr(model, name) for model in self._models])
        return self.setdefault(name, compiled[self._body_ids])


@dataclass
class PoolDraft:
    """What effects act on: n instances, each starting from its body's own numbers.

    Effects write here, always from these compiled values and never from an earlier
    sample, so that nothing adds up over resets.
    """

    robot: Robot
    """Template: names, addresses and sizes that all bodies share."""
    fields: dict[str, np.ndarray]
    """mjModel fields, [n, ...] each; any field of the model, see `FieldRows`."""
    stiffness: np.ndarray
    """[n, 12] N m/rad."""
    damping: np.ndarray
    """[n, 12] N m s/rad."""
    effort: np.ndarray
    """[n, 12] largest torque, N m."""
    velocity_limit: np.ndarray
    """[n, 12] speed at which no torque is left, rad/s."""
    friction: np.ndarray
    """[n] least friction coefficient set so far; infinite if none is."""
    wrench: np.ndarray
    """[n, 6] constant force and torque on the trunk, world axes, N and N m."""
    push_velocity: np.ndarray
    """[n, pushes, 2] horizontal change of the trunk's velocity at each push, m/s."""
    start_position: np.ndarray
    """[n, 12] canonical joint angles at the start, rad."""
    start_velocity: np.ndarray
    """[n, 12] canonical joint velocities at the start, rad/s."""
    start_xy: np.ndarray
    """[n, 2] place on the ground at the start, m."""
    patch: np.ndarray
    """[n] which patch of the ground, where it has several."""
    terrain: dict[str, np.ndarray]
    """[n] how rough each kind of ground is to be, of which a row gets one."""
    body_pose: np.ndarray
    """[n, 12] canonical angles of the body's own default pose, rad; no effect moves it."""
    default_pose: np.ndarray
    """[n, 12] canonical angles that the robot takes for its default pose, rad."""
    stuck_at: np.ndarray
    """[n, 12] canonical angle that a faulty joint sticks at, rad; NaN: it is sound."""
    reshaped: np.ndarray
    """[n] bool: no longer stands as its body does, so that its stance is found again."""
    signals: dict[str, np.ndarray]
    """What becomes of signals between policy and robot, [n, ...] each, for the task to
    act on; what no parameter sets is not there, and costs nothing."""

    @property
    def ground_geom_ids(self) -> np.ndarray:
        """Geoms of the robot that can touch the ground."""
        return np.flatnonzero(self.robot.model.geom_conaffinity == 1)

    def joint_ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and largest canonical angles, [n, 12]; infinite: no limit."""
        return self.robot.joint_ranges(self.fields["jnt_range"])


def draft_pool(robots: Sequence[Robot], body_ids: np.ndarray) -> PoolDraft:
    """Start n instances from the bodies `robots[body_ids]`, before any parameter acts.

    Gains and limits are the real robot's own, where its facts give them.
    """
    check_same_structure(robots)
    bodies = np.asarray(body_ids)
    fields = FieldRows(robots, bodies)
    for name in (*BODY_FIELDS, *EFFECT_FIELDS):
        fields[name]  # Takes the compiled values.

    def per_joint(name: str) -> np.ndarray:
        return np.stack([getattr(robot, name) for robot in robots])[bodies]

    n = len(bodies)
    return PoolDraft(
        robot=robots[0],
        fields=fields,
        stiffness=per_joint("stiffness_nm_rad"),
        damping=per_joint("damping_nm_s_rad"),
        effort=per_joint("torque_limit_nm"),
        velocity_limit=per_joint("velocity_limit_rad_s"),
        friction=np.full(n, np.inf),
        wrench=np.zeros((n, 6)),
        push_velocity=np.zeros((n, 0, 2)),
        start_position=per_joint("default_pose_rad"),
        start_velocity=np.zeros((n, 12)),
        start_xy=np.zeros((n, 2)),
        patch=np.zeros(n, dtype=int),
        terrain={},
        body_pose=per_joint("default_pose_rad"),
        default_pose=per_joint("default_pose_rad"),
        stuck_at=np.full((n, 12), np.nan),
        reshaped=np.zeros(n, dtype=bool),
        signals={},
    )


def check_same_structure(robots: Sequence[Robot]) -> None:
    """Refuse bodies that cannot share one batch: it runs them all in the first's model.

    Names and sizes are not enough: two versions of an imported robot may differ in what
    no world has a value of its own for, say its joints' dry friction.
    """
    first = robots[0]
    for robot in robots[1:]:
        if where := _difference(robot, first):
            raise InputError(
                f"'{robot.name}' and '{first.name}' differ in structure ({where}) and "
                "cannot share a batch: simulate them apart"
            )


def _difference(one: Robot, other: Robot) -> str | None:
    """Name the first thing in which two bodies differ and must not."""
    if one.ground != other.ground:
        return "ground"
    sizes = ("nq", "nv", "nu", "nbody", "ngeom", "names")
    pairs = [(name, one.model, other.model) for name in (*sizes, *SHARED_FIELDS)]
    own = ("joint_sign", "joint_offset_rad", "foot_geom_ids")
    for name, a, b in [*pairs, *((name, one, other) for name in own)]:
        if not np.array_equal(getattr(a, name), getattr(b, name)):
            return "joints, geoms or names" if name in sizes else name
    return None


Rows = PoolDraft
"""The former name, which users' files of effects may import."""
