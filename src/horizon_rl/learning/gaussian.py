"""The Gaussian that actions are drawn from, without waiting for the device."""

import torch
from rsl_rl.modules.distribution import GaussianDistribution
from torch import Tensor


class Gaussian(GaussianDistribution):
    """Rsl_rl's, drawn from by hand.

    `torch.normal` asks the device in every draw whether all deviations are positive;
    here they are clamped to be.
    """

    def sample(self) -> Tensor:
        mean, std = self.params
        return torch.addcmul(mean, std, torch.randn_like(mean)).detach()
