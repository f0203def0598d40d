"""What acts: the interface that all actors have, and the actor without a memory."""

import torch
from rsl_rl.models import MLPModel
from rsl_rl.modules.distribution import GaussianDistribution
from tensordict import TensorDict
from torch import Tensor

from horizon_rl.learning.config import ActorCfg
from horizon_rl.learning.history import Cache, History


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
    ):
        """Build an MLP over the groups of `obs` that the settings name."""
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

    def begin_rollout(self, num_worlds: int) -> History | None:
        """Get ready to act in a rollout; return what is remembered from before it."""

    def set_step(self, step: int) -> None:
        """Set the step of the rollout that comes next: a replayed graph counts none."""

    def mean_step(
        self, obs: TensorDict, memory: Cache | None
    ) -> tuple[Tensor, Cache | None]:
        """Return mean actions [n, -], and the caller's memory for the next step.

        The memory of `forward` stays as it is. Without one, no world has a past.
        """
        return self(obs), None
