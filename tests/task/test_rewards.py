"""Every reward term against a number worked by hand; the sum against the table."""

import math
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from horizon_rl.task import RewardCfg
from horizon_rl.task.observations import Motion
from horizon_rl.task.rewards import Step, reward_terms, total_reward

WEIGHTS = {  # The paper's table of reward terms.
    "linear_velocity": 1.25,
    "yaw_velocity": 1.25,
    "vertical_velocity": -2.0,
    "roll_pitch_velocity": -0.05,
    "action_rate": -0.02,
    "feet_air_time": 0.2,
    "flat_orientation": -2.5,
    "hip_deviation": -0.4,
    "thigh_calf_deviation": -0.04,
    "base_height": -5.0,
    "action_smoothness": -0.02,
    "joint_power": -2.0e-5,
    "torque": -2.0e-4,
    "joint_acceleration": -2.5e-7,
}

NOTHING = RewardCfg(**dict.fromkeys(WEIGHTS, 0.0))

# Any: rewards read no more of a table.
WORLD: Any = SimpleNamespace(
    standing_height=torch.tensor([0.35]),
    mass=torch.tensor([16.0]),
    torque_unit=torch.tensor([2.0]),
    length_unit=torch.tensor([1.5]),
)
# One robot in one step, in numbers that are easy to work with.
STEP = Step(
    motion=Motion(
        linear_velocity=torch.tensor([[0.7, 0.1, 0.2]]),
        angular_velocity=torch.tensor([[0.3, -0.4, 0.5]]),
        gravity=torch.tensor([[0.6, 0.0, -0.8]]),
        height=torch.tensor([0.25]),
        joint_offset=torch.tensor([[0.1, -0.2, 0.3] * 4]),
        joint_velocity=torch.full((1, 12), -2.0),
    ),
    command=torch.tensor([[1.0, -0.3, 0.0]]),
    action=torch.full((1, 12), 0.5),
    last_action=torch.full((1, 12), 0.3),
    torque=torch.full((1, 12), 10.0),
    joint_acceleration=torch.full((1, 12), 100.0),
    landed=torch.tensor([[True, False, True, False]]),
    air_time=torch.tensor([[0.7, 0.9, 0.4, 0.0]]),
    world=WORLD,
)

BY_HAND = {
    "linear_velocity": math.exp(-(0.3**2 + 0.4**2) / 0.25),  # Error (0.3, -0.4).
    "yaw_velocity": math.exp(-(0.5**2) / 0.25),
    "vertical_velocity": 0.04,
    "roll_pitch_velocity": 0.09 + 0.16,
    "action_rate": 12 * 0.04,
    "feet_air_time": (0.7 - 0.5) + (0.4 - 0.5),  # Only the feet that landed.
    "flat_orientation": 0.36,
    "hip_deviation": 4 * 0.1,
    "thigh_calf_deviation": 4 * (0.2 + 0.3),
    "base_height": 0.01,
    "action_smoothness": math.sqrt(12 * 0.04),
    "joint_power": 12 * 20.0 / 16.0,
    "torque": 12 * 100.0 / 4.0,  # (10 / 2)^2 each.
    "joint_acceleration": 12 * 22500.0,  # (100 * 1.5)^2 each.
}


def test_weights_are_the_papers():
    assert asdict(RewardCfg()) == WEIGHTS


@pytest.mark.parametrize("name", WEIGHTS)
def test_term_equals_the_number_worked_by_hand(name):
    assert reward_terms(STEP)[name].item() == pytest.approx(BY_HAND[name], rel=1e-5)


def test_reward_is_the_weighted_sum_times_the_control_step():
    total = sum(WEIGHTS[name] * BY_HAND[name] for name in WEIGHTS)
    reward = total_reward(STEP, 0.02, RewardCfg()).item()
    assert reward == pytest.approx(0.02 * total, rel=1e-5)


@pytest.mark.parametrize("name", WEIGHTS)
def test_a_weight_is_that_of_its_own_term(name):
    alone = replace(NOTHING, **{name: -3.0})
    reward = total_reward(STEP, 0.02, alone).item()
    assert reward == pytest.approx(-0.06 * BY_HAND[name], rel=1e-5)


def test_air_time_does_not_count_where_no_step_was_asked_for():
    slow = replace(STEP, command=torch.tensor([[0.05, 0.05, 1.0]]))
    assert reward_terms(slow)["feet_air_time"].item() == 0.0
