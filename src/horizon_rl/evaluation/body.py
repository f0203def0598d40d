"""The body of a column: a robot to simulate, and the facts that identify it."""
# MuJoCo's extension modules carry no type stubs.
# pyright: reportAttributeAccessIssue=false

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from horizon_rl.errors import InputError
from horizon_rl.records import encode
from horizon_rl.robots import Robot, build_robot, load_body, load_mjcf

WORDS = ("name", "title", "sources", "licence", "estimated")
"""What is said of a body, not what it is."""

MODEL_FIELDS = (
    *("body_mass", "body_inertia", "body_ipos", "body_iquat", "body_pos", "body_quat"),
    *("jnt_axis", "jnt_pos", "jnt_range", "geom_size", "geom_pos", "geom_friction"),
    *("dof_damping", "dof_armature", "dof_frictionloss"),
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
    # The compiler computes some of these: nine digits are the same on all machines.
    numbers = {
        name: [float(f"{x:.9g}") for x in getattr(robot.model, name).ravel()]
        for name in MODEL_FIELDS
    }
    numbers["pose"] = robot.default_pose_rad.tolist()
    return Body(robot, numbers)
