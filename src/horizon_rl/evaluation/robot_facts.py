"""The facts by which a suite identifies a robot."""
# MuJoCo's extension modules carry no type stubs.
# pyright: reportAttributeAccessIssue=false

from typing import Any

import numpy as np

from horizon_rl.physics.draft import BODY_FIELDS, EFFECT_FIELDS, SHARED_FIELDS
from horizon_rl.robots import load_body, load_robot
from horizon_rl.robots.load import is_mjcf
from horizon_rl.support.records import encode

WORDS = ("name", "title", "sources", "licence", "estimated")
"""What is said of a body, not what it is."""

MODEL_FIELDS = (
    *BODY_FIELDS,
    *EFFECT_FIELDS,
    *SHARED_FIELDS,
    # What robots built here lack, or all have in common.
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


def robot_facts(source: str) -> dict[str, Any]:
    """Return the numbers that identify a robot, by its name or file, as plain data."""
    if not is_mjcf(source):
        facts = encode(load_body(source))
        return {key: value for key, value in facts.items() if key not in WORDS}
    robot = load_robot(source)
    fields = [(robot.model, name) for name in MODEL_FIELDS]
    fields += [(robot.model.opt, name) for name in OPTIONS]
    fields += [(robot, name) for name in ROBOT_FIELDS]
    # The compiler computes some of these: nine digits are the same on all machines. As
    # text, since JSON has no word for a motor fact that the file lacks.
    return {
        name: " ".join(f"{x:.9g}" for x in np.ravel(getattr(owner, name)))
        for owner, name in fields
    }
