"""What a deployment must know of a policy and cannot read from its network.

It travels in the file as JSON. Arrays of twelve are in the order of `Joints.names`, the
order of the action and of the observation's joint terms.
"""
# MuJoCo's extension modules carry no type stubs.
# pyright: reportAttributeAccessIssue=false

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from horizon_rl.physics import CONTROL_DT, PHYSICS_STEPS, Pool
from horizon_rl.physics.motors import STALL_SHARE
from horizon_rl.robots import Robot
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
"""Unit, frame and meaning of the observation's terms."""


@dataclass(frozen=True, kw_only=True)
class Term:
    """A stretch of the observation: obs[start:stop] = scale * value."""

    name: str
    start: int
    stop: int
    scale: float
    """1: the normaliser is inside the file."""
    unit: str
    frame: str
    """trunk: x forward, y left, z up. joint: about the joint's axis."""
    noise: float
    """Uniform sensor noise in training, +- this; 0 is none."""
    about: str


@dataclass(frozen=True, kw_only=True)
class Joints:
    """The joints in the policy's order, and how each is driven."""

    names: tuple[str, ...]
    """As in the robot's model."""
    sign: tuple[float, ...]
    """The policy's angle = sign * the model's angle + offset_rad."""
    offset_rad: tuple[float, ...]
    default_pose_rad: tuple[float, ...]
    """Policy's angles; like all below, in the policy's directions."""
    stiffness_nm_rad: tuple[float, ...]
    damping_nm_s_rad: tuple[float, ...]
    torque_limit_nm: tuple[float, ...]
    velocity_limit_rad_s: tuple[float, ...]
    """Speed at which no torque is left."""


@dataclass(frozen=True, kw_only=True)
class Control:
    """How often what happens, and what an action does."""

    rate_hz: float
    """The policy acts this often."""
    physics_step_s: float
    """Joint control and physics in training."""
    physics_steps: int
    """... of them to an action."""
    action_scale: float
    target: str = "default_pose_rad + action_scale * action"
    """Joint angles that the controllers aim at."""
    torque: str = "stiffness * (target - angle) - damping * velocity, within +-bound"
    bound: str = (
        "torque_limit * clip(stall_share * (1 - velocity * sign(torque) / "
        "velocity_limit), 0, 1)"
    )
    stall_share: float = STALL_SHARE


@dataclass(frozen=True, kw_only=True)
class RobotFacts:
    """The robot that joints and gains are for."""

    name: str
    motors: str
    """scaled: as trained, scaled to this body. own: the real robot's."""
    mass_kg: float
    standing_height_m: float
    """Ground to the trunk's origin in the default pose."""
    own_torque_limit_nm: tuple[float, ...] | None
    """What the real motors can do, whatever was trained with; None if not known."""
    own_velocity_limit_rad_s: tuple[float, ...] | None


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the policy was asked for in training, and what counted as a fall."""

    max_speed_m_s: float
    """Forward and sideways, either way."""
    max_yaw_rate_rad_s: float
    tilt_limit_deg: float


@dataclass(frozen=True, kw_only=True)
class Training:
    """How the policy came about."""

    version: str
    """Of horizon-rl, that wrote the checkpoint."""
    weights_sha256: str
    seed: int
    method: str | None
    groups: str | None
    """Domain groups that the run widened."""
    bodies: str | None
    """Robots that it was trained on."""
    counters: dict[str, int]
    levels: dict[str, float]
    """Mastered level of every group; the others are at 0."""
    ranges: dict[str, tuple[float, float]]
    """Physics that these levels mean, in the reference body's units."""
    shipped: dict[str, Any] | None
    """Of a policy that comes with the package: command, commit, hardware."""


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """All of it."""

    schema: int = SCHEMA
    name: str
    kind: str
    """mlp or transformer."""
    window: int
    """Steps of its past that the policy remembers."""
    observation: tuple[Term, ...]
    control: Control
    joints: Joints
    robot: RobotFacts
    limits: Limits
    training: Training


def describe_observation(task: TaskCfg) -> tuple[Term, ...]:
    """Describe the actor's 45 numbers in order."""
    noise = noise_scale(task.noise, torch.device("cpu")).tolist()
    terms, start = [], 0
    for name, width in ACTOR_LAYOUT:
        unit, frame, about = TERMS[name]
        term = Term(
            name=name,
            start=start,
            stop=start + width,
            scale=1.0,
            unit=unit,
            frame=frame,
            # From single precision: 0.2, not 0.20000000298.
            noise=float(f"{noise[start]:.6g}"),
            about=about,
        )
        terms.append(term)
        start = term.stop
    return tuple(terms)


def describe_control(task: TaskCfg) -> Control:
    """Describe rates, and what an action does."""
    return Control(
        rate_hz=1.0 / CONTROL_DT,
        physics_step_s=CONTROL_DT / PHYSICS_STEPS,
        physics_steps=PHYSICS_STEPS,
        action_scale=task.action_scale,
    )


def describe_joints(pool: Pool) -> Joints:
    """Describe the joints and motors of a pool's first instance."""
    robot, model, fields = pool.robot, pool.robot.model, pool.fields
    names = (model.joint(model.dof_jntid[i]).name for i in robot.dof_adr)
    arrays = {
        "sign": robot.joint_sign,
        "offset_rad": robot.joint_offset_rad,
        "default_pose_rad": pool.default_pose[0],
        "stiffness_nm_rad": fields["actuator_gainprm"][0, :, 0],
        "damping_nm_s_rad": -fields["actuator_biasprm"][0, :, 2],
        "torque_limit_nm": pool.effort[0],
        "velocity_limit_rad_s": pool.velocity_limit[0],
    }
    tuples = {name: tuple(values.tolist()) for name, values in arrays.items()}
    return Joints(names=tuple(names), **tuples)


def describe_robot(robot: Robot, motors: str) -> RobotFacts:
    """Describe the robot, and what its own motors can do."""
    own = (robot.torque_limit_nm, robot.velocity_limit_rad_s)
    torque, velocity = (None if np.isnan(x).any() else tuple(x.tolist()) for x in own)
    return RobotFacts(
        name=robot.name,
        motors=motors,
        mass_kg=robot.total_mass_kg,
        standing_height_m=robot.standing_height_m,
        own_torque_limit_nm=torque,
        own_velocity_limit_rad_s=velocity,
    )
