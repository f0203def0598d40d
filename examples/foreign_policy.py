"""A policy from elsewhere: a trot written by hand, with conventions of its own.

    horizon eval trot=examples/foreign_policy.py:Trot

It stands for whatever you have trained in another stack. `Trot` is all glue: it keeps
what the policy remembers, and translates observations and actions. Put your network in
place of `trot`.
"""

import numpy as np
import torch
from tensordict import TensorDict

PERIOD_S, HEIGHT_M, LIFT_RAD, HALF_LENGTH_M = 0.28, 0.3, 0.5, 0.19
CONTROL_DT = 0.02
ACTION_SCALE = 0.25
"""Ours: joint target = default pose + 0.25 rad x action."""

TO_OURS = [3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8]
"""The policy's legs go FR FL RR RL, ours FL FR RL RR; the joints of a leg alike."""

DIAGONAL = np.array([0.0, 0.5, 0.5, 0.0])
"""Of FR, FL, RR, RL: which diagonal pair a leg belongs to, as a share of the period."""
FORE = np.array([1.0, 1.0, -1.0, -1.0])


def trot(time_s: np.ndarray, command: np.ndarray, tilt: np.ndarray, rate: np.ndarray):
    """Return joint offsets, rad, [n, 12], legs FR FL RR RL.

    Args:
        time_s: [n] since the episode began.
        command: [n, 3] velocity ahead and to the left, m/s, yaw rate, rad/s.
        tilt: [n, 2] how far the trunk leans ahead and to the left.
        rate: [n, 2] how fast it falls there, rad/s.
    """
    # Lean to the left, and the feet step to the left: what keeps a trot on its feet.
    ahead, left, turn = command.T[:, :, None]
    ahead = ahead + 1.5 * tilt[:, :1] + 0.15 * rate[:, :1]
    left = left + 1.5 * tilt[:, 1:] + 0.15 * rate[:, 1:] + FORE * HALF_LENGTH_M * turn
    share = (time_s[:, None] / PERIOD_S + DIAGONAL) % 1.0
    in_air = share < 0.5
    # Through the air from behind to ahead, on the ground back at the body's speed.
    swing = np.where(in_air, -np.cos(2.0 * np.pi * share), 3.0 - 4.0 * share)
    reach = PERIOD_S / 4.0 / HEIGHT_M * swing
    moves = np.linalg.norm(command, axis=1, keepdims=True) > 0.05
    lift = moves * LIFT_RAD * np.where(in_air, np.sin(2.0 * np.pi * share), 0.0)
    hip = left * reach
    thigh = -ahead * reach + lift
    return np.stack([hip, thigh, -2.0 * lift], axis=-1).reshape(len(time_s), 12)


class Trot:
    """The trot as HORIZON evaluates it: see `horizon_rl.task.Policy`."""

    def __init__(self):
        self._steps = np.zeros(0)

    def reset(self, mask: torch.Tensor) -> None:
        """Start again in the worlds of `mask` [n]."""
        if len(self._steps) != len(mask):
            self._steps = np.zeros(len(mask))
        self._steps[mask.cpu().numpy()] = 0

    def act(self, observations: TensorDict) -> torch.Tensor:
        """Return actions [n, 12] for the observations [n, 45] of n robots."""
        seen = observations["actor"].cpu().numpy()
        gyro, gravity, command = seen[:, 0:3], seen[:, 3:6], seen[:, 6:9]
        # Gravity points ahead of a trunk that leans ahead; it falls so by pitching.
        tilt = gravity[:, :2]
        rate = np.stack([gyro[:, 1], -gyro[:, 0]], axis=1)
        offsets = trot(self._steps * CONTROL_DT, command, tilt, rate)
        self._steps += 1
        actions = (offsets / ACTION_SCALE)[:, TO_OURS].astype(np.float32)
        return torch.from_numpy(actions).to(observations.device)
