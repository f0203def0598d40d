"""The body of a column: a robot to simulate, and the facts that identify it."""
# MuJoCo's extension modules carry no type stubs.
# pyright: reportAttributeAccessIssue=false

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from horizon_rl.errors import InputError
from horizon_rl.physics.rows import BODY_FIELDS, EFFECT_FIELDS, SHARED_FIELDS
from horizon_rl.records import encode
from horizon_rl.robots import Robot, build_robot, load_body, load_mjcf

WORDS = ("name", "title", "sources", "licence", "estimated")
"""What is said of a body, not what it is."""

MODEL_FIELDS = BODY_FIELDS + EFFECT_FIELDS + SHARED_FIELDS
"""All that moves an imported robot."""

ROBOT_FIELDS = (
    *("qpos_adr", "dof_adr", "joint_sign", "joint_offset_rad", "foot_geom_ids"),
    *("default_pose_rad", "torque_limit_nm", "stiffness_nm_rad", "damping_nm_s_rad"),
)


@dataclass(frozen=True, eq=False)
class Body:
    """A robot, and its numbers as plain data."""

    robot: Robot
    facts: dict[str, Any]


@cache
def load_evaluated_body(source: str) -> Body:
    """Load a preset, an intervention (go2+stilts), or an MJCF file by its path."""
    path = Path(source)
    if path.suffix.lower() not in (".xml", ".mjcf"):
        try:
            morphology = load_body(source)
        except InputError as error:
            raise InputError(f"{error}; or an MJCF file, *.xml") from error
        facts = {k: v for k, v in encode(morphology).items() if k not in WORDS}
        return Body(build_robot(morphology), facts)
    robot = load_mjcf(path)
    fields = [(robot.model, name) for name in MODEL_FIELDS]
    fields += [(robot, name) for name in ROBOT_FIELDS]
    # The compiler computes some of these: nine digits are the same on all machines. As
    # text, since JSON has no word for a motor fact that the file does not tell.
    facts = {
        name: " ".join(f"{x:.9g}" for x in getattr(owner, name).ravel())
        for owner, name in fields
    }
    return Body(robot, facts)
