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

    def __init__(
        self,
        obs: TensorDict,
        obs_groups: dict[str, list[str]],
        obs_set: str,
        output_dim: int,
        cfg: CriticCfg,
        privileged_group: str = "privileged",
    ):
        """Build the model with the signature that rsl_rl's models have."""
        self.encoder_dim = cfg.encoder_dim
        super().__init__(
            obs,
            obs_groups,
            obs_set,
            output_dim,
            cfg.hidden_dims,
            cfg.activation,
            obs_normalization=True,
        )
        self.privileged_group = privileged_group
        self.encoder = nn.Sequential(
            nn.Linear(obs[privileged_group].shape[-1], cfg.encoder_dim),
            resolve_nn_activation(cfg.activation),
        )

    def get_latent(
        self,
        obs: TensorDict,
        masks: Tensor | None = None,
        hidden_state: HiddenState = None,
    ) -> Tensor:
        encoded = self.encoder(obs[self.privileged_group])
        return torch.cat((super().get_latent(obs), encoded), dim=-1)

    def _get_latent_dim(self) -> int:
        return self.obs_dim + self.encoder_dim
