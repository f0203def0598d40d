"""The body of a column: a robot to simulate, and the facts that identify it."""
# MuJoCo's extension modules carry no type stubs.
# pyright: reportAttributeAccessIssue=false

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from horizon_rl.physics.rows import BODY_FIELDS, EFFECT_FIELDS, SHARED_FIELDS
from horizon_rl.robots import Robot, build_robot, load_body, load_mjcf
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import encode

WORDS = ("name", "title", "sources", "licence", "estimated")
"""What is said of a body, not what it is."""

MODEL_FIELDS = (
    *BODY_FIELDS,
    *EFFECT_FIELDS,
    *SHARED_FIELDS,
    # What robots built here have none of, or all have alike.
    *("dof_solimp", "dof_solref", "geom_fluid", "geom_gap", "geom_solmix"),
    *("eq_active0", "eq_data", "eq_obj1id", "eq_obj2id", "eq_solimp", "eq_solref"),
    *("eq_type", "exclude_signature", "hfield_data", "hfield_size"),
    *("pair_dim", "pair_friction", "pair_gap", "pair_geom1", "pair_geom2"),
    *("pair_margin", "pair_solimp", "pair_solref", "pair_solreffriction"),
    *("tendon_damping", "tendon_frictionloss", "tendon_lengthspring"),
    *("tendon_limited", "tendon_range", "tendon_stiffness", "wrap_objid", "wrap_prm"),
)
"""All that moves an imported robot."""

OPTIONS = (
    *("density", "disableflags", "enableflags", "gravity", "noslip_iterations"),
    *("viscosity", "wind"),
)
"""The file's own options: what `set_options` leaves as it is."""

ROBOT_FIELDS = (
    *("qpos_adr", "dof_adr", "joint_sign", "joint_offset_rad", "foot_geom_ids"),
    *("default_pose_rad", "torque_limit_nm", "stiffness_nm_rad", "damping_nm_s_rad"),
)


@dataclass(frozen=True, eq=False)
class Body:
    """A robot, and its numbers as plain data."""

    robot: Robot
    facts: dict[str, Any]


def load_evaluated_body(source: str) -> Body:
    """Load a preset, an intervention (go2+stilts), or an MJCF file by its path."""
    path = Path(source)
    if path.suffix.lower() not in (".xml", ".mjcf"):
        return _load_named(source)
    # A file may change while a session goes on, and a folder be left.
    changed_ns = path.stat().st_mtime_ns if path.exists() else 0
    return _load_file(path, path.resolve(), changed_ns)


@cache
def _load_named(name: str) -> Body:
    try:
        morphology = load_body(name)
    except InputError as error:
        raise InputError(f"{error}; or an MJCF file, *.xml") from error
    facts = {k: v for k, v in encode(morphology).items() if k not in WORDS}
    return Body(build_robot(morphology), facts)


@cache
def _load_file(path: Path, place: Path, changed_ns: int) -> Body:
    """Import a robot; anew if `path` means another place, or the file has changed."""
    robot = load_mjcf(path)
    fields = [(robot.model, name) for name in MODEL_FIELDS]
    fields += [(robot.model.opt, name) for name in OPTIONS]
    fields += [(robot, name) for name in ROBOT_FIELDS]
    # The compiler computes some of these: nine digits are the same on all machines. As
    # text, since JSON has no word for a motor fact that the file does not tell.
    facts = {
        name: " ".join(f"{x:.9g}" for x in np.ravel(getattr(owner, name)))
        for owner, name in fields
    }
    return Body(robot, facts)
