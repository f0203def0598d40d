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
    """Sensors with the task's noise: a function of scenario, step and channel."""

    def __init__(self, cfg: NoiseCfg, device: torch.device):
        self._noise = noise_scale(cfg, device)

    def errors(self, key: Tensor, rows: Tensor, steps: Tensor) -> Tensor:
        """Return reading minus truth, [n, 45]; arguments as in `symmetric_noise`."""
        return symmetric_noise(key, rows, steps, NUM_ACTOR) * self._noise

    def receive(
        self, reading: Tensor, key: Tensor, rows: Tensor, steps: Tensor
    ) -> Tensor:
        """Return what the robot goes by, [n, 45], in place of a reading that is lost."""
        return reading


class FaultySensors(Sensors):
    """Sensors whose worlds differ: noise of their own, biases, readings that are lost."""

    def __init__(
        self, cfg: NoiseCfg, signals: Mapping[str, Tensor], n: int, device: torch.device
    ):
        """Read each world's `signals` in every step; any of them may be missing."""
        super().__init__(cfg, device)
        self._none = torch.zeros((n, NUM_ACTOR), device=device)
        self._scale = signals.get("noise_scale", torch.ones(n, device=device))
        self._lost_share = signals.get("lost_readings", self._none[:, 0])
        self._biases = [
            signals.get(BIASES.get(name, ""), self._none[:, :width])
            for name, width in ACTOR_LAYOUT
        ]
        sensed = [name not in OWN for name, width in ACTOR_LAYOUT for _ in range(width)]
        self._sensed = torch.tensor(sensed, device=device)
        self._last = torch.zeros_like(self._none)

    def errors(self, key: Tensor, rows: Tensor, steps: Tensor) -> Tensor:
        noise = super().errors(key, rows, steps) * self._scale.unsqueeze(1)
        return noise + torch.cat(self._biases, dim=1)

    def receive(
        self, reading: Tensor, key: Tensor, rows: Tensor, steps: Tensor
    ) -> Tensor:
        # The channel after those of the noise, stretched to 0..1. An episode's first
        # reading is never lost: there would be nothing to go by.
        chance = symmetric_noise(key, rows, steps, 1, first=NUM_ACTOR) * 0.5 + 0.5
        lost = (chance < self._lost_share.unsqueeze(1)) & (steps > 0).unsqueeze(1)
        received = torch.where(lost & self._sensed, self._last, reading)
        self._last.copy_(received)
        return received


def make_sensors(
    cfg: NoiseCfg, signals: Mapping[str, Tensor], n: int, device: torch.device
) -> Sensors:
    """Make the sensors of n worlds whose signals are `signals`."""
    known = {"noise_scale", "lost_readings", *BIASES.values()}
    if known.isdisjoint(signals):
        return Sensors(cfg, device)
    return FaultySensors(cfg, signals, n, device)
