"""Sensing: what the robot's sensors make of the truth."""

from collections.abc import Mapping

import torch
from torch import Tensor

from horizon_rl.task.config import NoiseCfg
from horizon_rl.task.noise import symmetric_noise
from horizon_rl.task.observations import ACTOR_LAYOUT, NUM_ACTOR, noise_scale

BIASES = {"angular_velocity": "gyro_bias", "gravity": "gravity_bias"}
"""Signal that is added to a part of the observation. An encoder's bias is none of them:
it shifts the default pose, since the motors' controllers read the encoders too."""

OWN = ("command", "last_action")
"""What the robot's computer knows by itself: it is never lost."""


class Sensors:
    """Sensors with the task's noise: a function of scenario, step and channel.

    Worlds whose signals say so have noise of their own, biases, and lost readings.
    """

    def __init__(
        self, cfg: NoiseCfg, signals: Mapping[str, Tensor], n: int, device: torch.device
    ):
        """Read each world's `signals` in every step; any of them may be missing."""
        self._noise = noise_scale(cfg, device)
        known = {"noise_scale", "lost_readings", *BIASES.values()}
        self._faulty = not known.isdisjoint(signals)
        if not self._faulty:
            return
        self._last = torch.zeros((n, NUM_ACTOR), device=device)
        none = torch.zeros_like(self._last)
        self._scale = signals.get("noise_scale", torch.ones(n, device=device))
        self._lost_share = signals.get("lost_readings", none[:, 0])
        self._biases = [
            signals.get(BIASES.get(name, ""), none[:, :width])
            for name, width in ACTOR_LAYOUT
        ]
        sensed = [name not in OWN for name, width in ACTOR_LAYOUT for _ in range(width)]
        self._sensed = torch.tensor(sensed, device=device)

    def read(self, truth: Tensor, key: Tensor, ids: Tensor, steps: Tensor) -> Tensor:
        """Return what the robot goes by, [n, 45]; key, ids, steps: `symmetric_noise`."""
        noise = symmetric_noise(key, ids, steps, NUM_ACTOR) * self._noise
        if not self._faulty:
            return truth + noise
        noise = noise * self._scale.unsqueeze(1) + torch.cat(self._biases, dim=1)
        # The channel after those of the noise, stretched to 0..1. An episode's first
        # reading is never lost: there would be nothing to go by.
        chance = symmetric_noise(key, ids, steps, 1, first=NUM_ACTOR) * 0.5 + 0.5
        lost = (chance < self._lost_share.unsqueeze(1)) & (steps > 0).unsqueeze(1)
        received = torch.where(lost & self._sensed, self._last, truth + noise)
        self._last.copy_(received)
        return received
