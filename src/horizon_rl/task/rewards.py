"""Rewards: the paper's table of terms; their weights are settings, `RewardCfg`."""

from dataclasses import dataclass

import torch

from horizon_rl.task.config import RewardCfg
from horizon_rl.task.observations import Motion
from horizon_rl.task.table import WorldTable

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
    world: WorldTable
    """What the bodies are: standing height, mass, units."""


def reward_terms(s: Step) -> dict[str, torch.Tensor]:
    """Return every term of one control step by its name, [n] each."""
    linear, angular = s.motion.linear_velocity, s.motion.angular_velocity
    error, yaw_error = s.command[:, :2] - linear[:, :2], s.command[:, 2] - angular[:, 2]
    change = s.action - s.last_action
    asked_to_move = s.command[:, :2].norm(dim=1) > MIN_STEPPING_SPEED
    air_time = ((s.air_time - MIN_AIR_TIME) * s.landed).sum(1)
    legs = s.motion.joint_offset.unflatten(1, (-1, JOINTS_OF_A_LEG))
    power = (s.torque * s.motion.joint_velocity).abs().sum(1)
    return {
        "linear_velocity": torch.exp(-error.square().sum(1) / SIGMA_SQUARED),
        "yaw_velocity": torch.exp(-yaw_error.square() / SIGMA_SQUARED),
        "vertical_velocity": linear[:, 2].square(),
        "roll_pitch_velocity": angular[:, :2].square().sum(1),
        "action_rate": change.square().sum(1),
        "feet_air_time": air_time * asked_to_move,
        "flat_orientation": s.motion.gravity[:, :2].square().sum(1),
        "hip_deviation": legs[:, :, 0].abs().sum(1),
        "thigh_calf_deviation": legs[:, :, 1:].abs().sum((1, 2)),
        "base_height": (s.motion.height - s.world.standing_height).square(),
        "action_smoothness": change.norm(dim=1),
        "joint_power": power / s.world.mass,
        "torque": s.torque.square().sum(1) / s.world.torque_unit.square(),
        "joint_acceleration": s.joint_acceleration.square().sum(1)
        * s.world.length_unit.square(),
    }


def total_reward(step: Step, dt: float, weights: RewardCfg) -> torch.Tensor:
    """Return the reward of one control step that took dt seconds, [n]."""
    reward = torch.zeros_like(step.world.mass)
    for name, term in reward_terms(step).items():
        reward += getattr(weights, name) * term
    return reward * dt
