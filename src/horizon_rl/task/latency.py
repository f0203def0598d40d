"""Latency: actions that reach the motors some time after they were sent."""

from math import ceil

import torch
from torch import Tensor

from horizon_rl.physics import CONTROL_DT


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
