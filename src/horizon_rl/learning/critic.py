"""The critic, which knows the instance that the actor must guess."""

import torch
from rsl_rl.models import MLPModel
from rsl_rl.modules import HiddenState
from rsl_rl.utils import resolve_nn_activation
from tensordict import TensorDict
from torch import Tensor, nn

from horizon_rl.learning.config import CriticCfg


class PrivilegedCritic(MLPModel):
    """A value from observations, normalised, and the privileged group, encoded.

    The privileged group comes on a fixed scale and bypasses the empirical normaliser:
    normalised over a baseline of 39..41 N m, an effort of 80 would arrive as 68
    standard deviations. Its encoder is one layer with an activation; another linear
    layer would merge with the first of the MLP that follows.
    """

    def __init__(self, obs: TensorDict, cfg: CriticCfg):
        """Build the network for the groups of `obs` that the settings name."""
        self.encoder_dim = cfg.encoder_dim
        super().__init__(
            obs,
            {"critic": list(cfg.obs_groups)},
            "critic",
            1,
            cfg.hidden_dims,
            cfg.activation,
            obs_normalization=True,
        )
        self.privileged_groups = cfg.privileged_groups
        self.encoder = nn.Sequential(
            nn.Linear(self._privileged(obs).shape[-1], cfg.encoder_dim),
            resolve_nn_activation(cfg.activation),
        )

    def get_latent(
        self,
        obs: TensorDict,
        masks: Tensor | None = None,
        hidden_state: HiddenState = None,
    ) -> Tensor:
        encoded = self.encoder(self._privileged(obs))
        return torch.cat((super().get_latent(obs), encoded), dim=-1)

    def _privileged(self, obs: TensorDict) -> Tensor:
        groups = [obs[group] for group in self.privileged_groups]
        return groups[0] if len(groups) == 1 else torch.cat(groups, dim=-1)

    def _get_latent_dim(self) -> int:
        return self.obs_dim + self.encoder_dim
