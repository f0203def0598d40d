"""The networks without a memory: the interface of all actors, an MLP, and the critic."""

from collections.abc import Sequence
from typing import Any

import torch
from rsl_rl.models import MLPModel
from rsl_rl.modules import HiddenState
from rsl_rl.modules.distribution import GaussianDistribution
from rsl_rl.utils import resolve_nn_activation
from tensordict import TensorDict
from torch import Tensor, nn

from horizon_rl.learning.config import ActorCfg, CriticCfg
from horizon_rl.learning.history import History, Memory
from horizon_rl.learning.mirror import OneView


class Gaussian(GaussianDistribution):
    """rsl_rl's distribution of actions, without waiting for the device.

    `torch.normal` asks the device in every draw whether all deviations are positive;
    here they are clamped to be.
    """

    def sample(self) -> Tensor:
        mean, std = self.params
        return torch.addcmul(mean, std, torch.randn_like(mean)).detach()


class Actor(MLPModel):
    """A policy network of rsl_rl; this one is an MLP that remembers nothing.

    An actor with a memory sets `is_recurrent`, so that updates bring whole sequences
    with their `History` instead of single steps, and overrides the methods below.
    """

    kind = "mlp"
    """How files and tables name it."""
    window = 0
    """Past steps that a layer attends to."""

    def __init__(
        self,
        obs: TensorDict,
        num_actions: int,
        cfg: ActorCfg,
        hidden_dims: tuple[int, ...],
        activation: str = "elu",
        view: OneView | None = None,
    ):
        """Build an MLP over the groups of `obs` that the settings name.

        Args:
            obs: What worlds show, for its shapes.
            num_actions: Width of an action.
            cfg: What the actor reads, and its noise.
            hidden_dims: Widths of the hidden layers.
            activation: Between the layers.
            view: How it looks at worlds; None: at each as it is.
        """
        self.privileged_groups = cfg.privileged_groups
        self.encoder_dim = cfg.encoder_dim if cfg.privileged_groups else 0
        super().__init__(
            obs,
            {"actor": list(cfg.obs_groups)},
            "actor",
            num_actions,
            hidden_dims,
            activation,
            obs_normalization=True,
            distribution_cfg={
                "class_name": Gaussian,
                "init_std": cfg.initial_std,
                "std_type": cfg.std_parameter,
            },
        )
        self.view = view or OneView()
        self.num_inputs = self._inputs(obs).shape[-1]
        """Numbers that it reads of a world, those that bypass the normaliser last."""
        if self.encoder_dim:
            width = self.num_inputs - self.obs_dim
            self.encoder = _build_encoder(width, self.encoder_dim, activation)

    @property
    def is_oracle(self) -> bool:
        """Whether it knows what only a simulator can tell."""
        return bool(self.privileged_groups)

    def forward(
        self,
        obs: TensorDict,
        masks: Tensor | None = None,
        hidden_state: HiddenState = None,
        stochastic_output: bool = False,
    ) -> Tensor:
        """Return mean actions [..., n, -]; or sampled ones, and set the distribution."""
        mean = self.act_on(self.get_latent(obs, masks, hidden_state))
        if not stochastic_output:
            return mean
        assert self.distribution is not None
        self.distribution.update(mean)
        return self.distribution.sample()

    def get_latent(self, obs: TensorDict, *_: Any, **__: Any) -> Tensor:
        """Return latents [..., num_views * n, -]."""
        return self.features(self.view.add_views(self._inputs(obs), dim=-2))

    def act_on(self, latent: Tensor) -> Tensor:
        """Return mean actions [..., n, -] for the latents of all views."""
        return self.view.mean_action(self.mlp(latent))

    def features(self, raw: Tensor) -> Tensor:
        """Normalise inputs [..., num_inputs], and encode those that are privileged."""
        if not self.encoder_dim:
            return self.obs_normalizer(raw)
        seen, privileged = raw.tensor_split((self.obs_dim,), dim=-1)
        return torch.cat((self.obs_normalizer(seen), self.encoder(privileged)), dim=-1)

    def _inputs(self, obs: TensorDict) -> Tensor:
        return _join(obs, (*self.obs_groups, *self.privileged_groups))

    def _get_latent_dim(self) -> int:
        return self.obs_dim + self.encoder_dim

    def begin_rollout(self, num_worlds: int) -> History | None:
        """Get ready to act in a rollout; return what is remembered from before it."""

    def set_step(self, step: int) -> None:
        """Set the step of the rollout that comes next: a replayed graph counts none."""

    def mean_step(self, obs: TensorDict, memory: Any) -> tuple[Tensor, Memory | None]:
        """Return mean actions [n, -], and the caller's memory for the next step.

        The memory of `forward` stays as it is. Without one, no world has a past.

        Args:
            obs: What worlds show.
            memory: What the last call returned, or None.
        """
        return self(obs), None


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
        width = _join(obs, cfg.privileged_groups).shape[-1]
        self.encoder = _build_encoder(width, cfg.encoder_dim, cfg.activation)

    def get_latent(self, obs: TensorDict, *_: Any, **__: Any) -> Tensor:
        encoded = self.encoder(_join(obs, self.privileged_groups))
        return torch.cat((super().get_latent(obs), encoded), dim=-1)

    def _get_latent_dim(self) -> int:
        return self.obs_dim + self.encoder_dim


def _join(obs: TensorDict, groups: Sequence[str]) -> Tensor:
    """Put groups side by side."""
    parts = [obs[group] for group in groups]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)


def _build_encoder(num_inputs: int, width: int, activation: str) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(num_inputs, width), resolve_nn_activation(activation)
    )
