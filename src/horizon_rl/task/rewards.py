"""Rewards: the paper's table, every term one function, with its weight."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from horizon_rl.task.motion import Motion

SIGMA_SQUARED = 0.25
"""Width of the tracking rewards, (m/s)^2 and (rad/s)^2."""

MIN_AIR_TIME = 0.5
"""Swing that feet air time rewards, s."""

MIN_STEPPING_SPEED = 0.1
"""Slower commands, m/s, ask for no steps: feet air time does not count."""

JOINTS_OF_A_LEG = 3
"""Hip, thigh, calf, leg after leg."""


@dataclass(frozen=True, eq=False)
class Step:
    """One control step of n robots, as rewards see it."""

    motion: Motion
    command: torch.Tensor
    """[n, 3] forward and sideways velocity, m/s; yaw rate, rad/s."""
    action: torch.Tensor
    """[n, 12]"""
    last_action: torch.Tensor
    """[n, 12]"""
    torque: torch.Tensor
    """[n, 12] N m."""
    joint_acceleration: torch.Tensor
    """[n, 12] change of velocity over the control step, rad/s^2."""
    landed: torch.Tensor
    """[n, 4] bool: this foot met the ground in this step."""
    air_time: torch.Tensor
    """[n, 4] how long it had been in the air, s."""
    standing_height: torch.Tensor
    """[n] the body's own, m."""
    mass: torch.Tensor
    """[n] the body's own, kg."""
    torque_unit: torch.Tensor
    """[n] m L of the body, relative to the reference body."""
    length_unit: torch.Tensor
    """[n] leg length of the body, relative to the reference body."""


def linear_velocity(s: Step) -> torch.Tensor:
    error = s.command[:, :2] - s.motion.linear_velocity[:, :2]
    return torch.exp(-error.square().sum(1) / SIGMA_SQUARED)


def yaw_velocity(s: Step) -> torch.Tensor:
    error = s.command[:, 2] - s.motion.angular_velocity[:, 2]
    return torch.exp(-error.square() / SIGMA_SQUARED)


def vertical_velocity(s: Step) -> torch.Tensor:
    return s.motion.linear_velocity[:, 2].square()


def roll_pitch_velocity(s: Step) -> torch.Tensor:
    return s.motion.angular_velocity[:, :2].square().sum(1)


def action_rate(s: Step) -> torch.Tensor:
    return (s.action - s.last_action).square().sum(1)


def feet_air_time(s: Step) -> torch.Tensor:
    asked_to_move = s.command[:, :2].norm(dim=1) > MIN_STEPPING_SPEED
    return ((s.air_time - MIN_AIR_TIME) * s.landed).sum(1) * asked_to_move


def flat_orientation(s: Step) -> torch.Tensor:
    return s.motion.gravity[:, :2].square().sum(1)


def hip_deviation(s: Step) -> torch.Tensor:
    return s.motion.joint_offset[:, ::JOINTS_OF_A_LEG].abs().sum(1)


def thigh_calf_deviation(s: Step) -> torch.Tensor:
    legs = s.motion.joint_offset.unflatten(1, (-1, JOINTS_OF_A_LEG))
    return legs[:, :, 1:].abs().sum((1, 2))


def base_height(s: Step) -> torch.Tensor:
    return (s.motion.height - s.standing_height).square()


def action_smoothness(s: Step) -> torch.Tensor:
    return (s.action - s.last_action).norm(dim=1)


def joint_power(s: Step) -> torch.Tensor:
    return (s.torque * s.motion.joint_velocity).abs().sum(1) / s.mass


def torque(s: Step) -> torch.Tensor:
    return s.torque.square().sum(1) / s.torque_unit.square()


def joint_acceleration(s: Step) -> torch.Tensor:
    return s.joint_acceleration.square().sum(1) * s.length_unit.square()


Term = Callable[[Step], torch.Tensor]

REWARDS: Mapping[str, tuple[float, Term]] = {
    "linear_velocity": (1.25, linear_velocity),
    "yaw_velocity": (1.25, yaw_velocity),
    "vertical_velocity": (-2.0, vertical_velocity),
    "roll_pitch_velocity": (-0.05, roll_pitch_velocity),
    "action_rate": (-0.02, action_rate),
    "feet_air_time": (0.2, feet_air_time),
    "flat_orientation": (-2.5, flat_orientation),
    "hip_deviation": (-0.4, hip_deviation),
    "thigh_calf_deviation": (-0.04, thigh_calf_deviation),
    "base_height": (-5.0, base_height),
    "action_smoothness": (-0.02, action_smoothness),
    "joint_power": (-2.0e-5, joint_power),
    "torque": (-2.0e-4, torque),
    "joint_acceleration": (-2.5e-7, joint_acceleration),
}
"""Weight and term by name; the reward of a step is their sum times the control step."""


def total_reward(step: Step, dt: float) -> torch.Tensor:
    """Return the reward of one control step, [n]."""
    reward = torch.zeros_like(step.mass)
    for weight, term in REWARDS.values():
        reward += weight * term(step)
    return reward * dt
