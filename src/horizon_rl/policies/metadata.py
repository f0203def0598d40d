"""What a deployment must know of a policy and cannot read from its network.

It travels in the file as JSON; docs/deploy.md lists the fields for those who read it.
Arrays of twelve are in the order of the joints' names, the order of the action and of
the observation's joint terms.
"""

from typing import Any

import numpy as np
import torch

from horizon_rl.domains import Catalogue
from horizon_rl.learning.checkpoint import CheckpointRecord
from horizon_rl.physics import CONTROL_DT, PHYSICS_STEPS, Pool
from horizon_rl.physics.motors import STALL_SHARE, Motors
from horizon_rl.policies.shipped import model_names, read_model
from horizon_rl.support.records import encode
from horizon_rl.task import ACTOR_LAYOUT, TaskCfg
from horizon_rl.task.observations import noise_scale

SCHEMA = 1
"""Version of the format; grows when a reader of the old one would go wrong."""

TERMS = {
    "angular_velocity": ("rad/s", "trunk", "angular velocity of the trunk"),
    "gravity": ("1", "trunk", "unit vector of gravity; (0, 0, -1) when level"),
    "command": ("m/s, m/s, rad/s", "trunk", "velocity forward and left, yaw rate"),
    "joint_offset": ("rad", "joint", "joint angle minus default pose"),
    "joint_velocity": ("rad/s", "joint", "joint velocity"),
    "last_action": ("1", "joint", "action of the step before; 0 in the first"),
}
"""Unit, frame and meaning of the observation's terms. Frame trunk: x forward, y left, z
up. Frame joint: about the joint's axis."""


def describe_control(task: TaskCfg) -> dict[str, Any]:
    """Describe what the policy sees, how often it acts, and what an action does."""
    noise = noise_scale(task.noise, torch.device("cpu")).tolist()
    terms, start = [], 0
    for name, width in ACTOR_LAYOUT:
        unit, frame, about = TERMS[name]
        # obs[start:stop] = scale * value, with uniform noise of +- `noise` in training.
        term = {
            "name": name,
            "start": start,
            "stop": start + width,
            "scale": 1.0,  # The normaliser is inside the file.
            "unit": unit,
            "frame": frame,
            # From single precision: 0.2, not 0.20000000298.
            "noise": float(f"{noise[start]:.6g}"),
            "about": about,
        }
        terms.append(term)
        start += width
    return {
        "observation": terms,
        "control": {
            "rate_hz": 1.0 / CONTROL_DT,
            "physics_step_s": CONTROL_DT / PHYSICS_STEPS,
            "physics_steps": PHYSICS_STEPS,
            "action_scale": task.action_scale,
            "target": "default_pose_rad + action_scale * action",
            "torque": "stiffness * (target - angle) - damping * velocity, within +-bound",
            "bound": "torque_limit * clip(stall_share * (1 - velocity * sign(torque) / "
            "velocity_limit), 0, 1)",
            "stall_share": STALL_SHARE,
        },
    }


def describe_robot(pool: Pool, motors: Motors) -> dict[str, Any]:
    """Describe the robot of a pool, and its joints and motors in the first instance."""
    robot, model, fields = pool.robot, pool.robot.model, pool.fields
    joints = {
        # The policy's angle = sign * the model's angle + offset_rad.
        "sign": robot.joint_sign,
        "offset_rad": robot.joint_offset_rad,
        # From here on in the policy's directions.
        "default_pose_rad": pool.default_pose[0],
        "stiffness_nm_rad": fields["actuator_gainprm"][0, :, 0],
        "damping_nm_s_rad": -fields["actuator_biasprm"][0, :, 2],
        "torque_limit_nm": pool.effort[0],
        "velocity_limit_rad_s": pool.velocity_limit[0],
    }
    names = [model.joint(model.dof_jntid[i]).name for i in robot.dof_adr]
    return {
        "joints": {"names": names, **{k: x.tolist() for k, x in joints.items()}},
        "robot": {
            "name": robot.name,
            "motors": motors,
            "mass_kg": robot.total_mass_kg,
            "standing_height_m": robot.standing_height_m,
            # What the real motors can do, whatever was trained with.
            "own_torque_limit_nm": _if_known(robot.torque_limit_nm),
            "own_velocity_limit_rad_s": _if_known(robot.velocity_limit_rad_s),
        },
    }


def _if_known(values: np.ndarray) -> list[float] | None:
    return None if np.isnan(values).any() else values.tolist()


def describe_training(
    source: str, record: CheckpointRecord, catalogue: Catalogue, task: TaskCfg
) -> dict[str, Any]:
    """Describe what a policy was trained for and how, as far as its checkpoint says."""
    shipped = None
    if source in model_names():
        shipped = encode(read_model(source))
        del shipped["results"]
    ranges = catalogue.ranges(record.levels)
    return {
        "limits": {
            "max_speed_m_s": task.command.max_speed,
            "max_yaw_rate_rad_s": task.command.max_yaw_rate,
            "tilt_limit_deg": task.tilt_limit_deg,
        },
        "training": {
            "version": record.version,
            "weights_sha256": record.weights_sha256,
            "seed": record.seed,
            "method": record.config.get("method"),
            "groups": record.config.get("groups"),
            "bodies": record.config.get("robot"),
            "counters": record.counters,
            "levels": record.levels,
            # Physics that these levels mean, in the reference body's units.
            "ranges": {name: (span.low, span.high) for name, span in ranges.items()},
            "shipped": shipped,
        },
    }
