"""What becomes of signals between policy and robot: late actions, sensors' errors."""

from collections.abc import Mapping
from math import ceil

import torch
from torch import Tensor

from horizon_rl.physics import CONTROL_DT
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


class ActionDelay:
    """Hands on what each world was sent as long ago as its delay is.

    A delay between two whole control steps mixes what was sent then by its share of
    each: what the motors are told is, in the mean over the control step, what a delay
    within the step would tell them. So a delay acts smoothly, and not in steps of 20 ms.
    """

    def __init__(self, delay_s: Tensor, longest_s: float, width: int):
        """Remember enough for the longest delay.

        Args:
            delay_s: [n] each world's delay, s; read in every step.
            longest_s: None of them ever exceeds this.
            width: Numbers in an action.
        """
        shape = (len(delay_s), ceil(longest_s / CONTROL_DT) + 2, width)
        self._delay_s = delay_s
        self._sent = torch.zeros(shape, device=delay_s.device)
        """[n, steps ago, width]; zeros, the default pose, from before the start."""
        self._ids = torch.arange(len(delay_s), device=delay_s.device)

    def arrive(self, action: Tensor) -> Tensor:
        """Send actions [n, width]; return what arrives in this control step."""
        self._sent.copy_(torch.cat((action.unsqueeze(1), self._sent[:, :-1]), dim=1))
        steps = self._delay_s / CONTROL_DT
        whole = steps.long()
        newer, older = self._sent[self._ids, whole], self._sent[self._ids, whole + 1]
        return torch.lerp(newer, older, (steps - whole).unsqueeze(1))

    def settle(self, action: Tensor) -> None:
        """Take actions [n, width] as sent for as long as is remembered."""
        self._sent.copy_(action.unsqueeze(1).expand_as(self._sent))

    def forget(self, mask: Tensor) -> None:
        """Forget what the worlds in `mask` [n] were sent: their episode begins."""
        self._sent.masked_fill_(mask.view(-1, 1, 1), 0.0)
