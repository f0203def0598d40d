"""GRAM's three losses: PPO's through the context, the adversary's, and the history's."""

from dataclasses import replace

import torch
from tensordict import TensorDict
from torch import Tensor

from horizon_rl.learning.config import GramCfg
from horizon_rl.learning.gram_networks import (
    LATENT,
    Adversary,
    ContextEncoder,
    GramActor,
    GramCritic,
)
from horizon_rl.learning.losses import surrogate_loss, weighted_mean
from horizon_rl.learning.steps import GuardedSteps
from horizon_rl.learning.storage import Minibatch, SequenceStorage
from horizon_rl.learning.update import GradientSteps
from horizon_rl.support.ranks import ALONE

ROBUST = "robust"
"""Group of a rollout [n, 1]: 1 in worlds in robust mode, else 0."""
HISTORY = "history"
"""Group of a rollout [n, -]: see `Window`; only once the context has learnt."""
PUSH = "push"
"""Group of a rollout [n, 4]: whether the adversary pushed, the angle that it drew, and
mean and standard deviation that it drew it from; only as long as the context learns."""


def latents(obs: TensorDict, context: ContextEncoder) -> Tensor:
    """Return what actor and critic are told while the context learns, [..., latent]."""
    return (1.0 - obs[ROBUST]) * context(obs)


def normalise_by_mode(
    advantages: Tensor, robust: Tensor, weights: Tensor | None = None
) -> Tensor:
    """Return advantages with mean 0 and standard deviation 1 in each of the modes.

    Pushed worlds have other returns: normalised together, what mode a world is in would
    look like what its actions were worth.

    Args:
        advantages: [T, n, 1].
        robust: [T, n, 1] 1 in robust mode, else 0.
        weights: [T, n, 1] how much each step counts; None: all the same.
    """
    counts = torch.ones_like(advantages) if weights is None else weights
    result = torch.zeros_like(advantages)
    for mode in (robust, 1.0 - robust):
        share = mode * counts
        total = share.sum().clamp(min=1e-8)
        mean = (share * advantages).sum() / total
        std = ((share * (advantages - mean).square()).sum() / total).sqrt()
        result += mode * (advantages - mean) / (std + 1e-8)
    return result


class ContextSteps(GradientSteps):
    """PPO's steps, along which the context learns what actor and critic need to know."""

    def __init__(
        self,
        actor: GramActor,
        critic: GramCritic,
        context: ContextEncoder,
        storage: SequenceStorage,
        device: str,
        compiles: bool = False,
    ):
        self.context = context
        super().__init__(
            actor,
            critic,
            storage,
            device,
            ALONE,
            compiles=compiles,
            others={"context": context},
        )

    def loss(self, batch: Minibatch) -> tuple[Tensor, dict[str, Tensor]]:
        # Computed again: the latent of the rollout has no gradient.
        told = {LATENT: latents(batch.observations, self.context)}
        obs = batch.observations.copy().update(told)
        return super().loss(batch._replace(observations=obs))


class AdversarySteps(GuardedSteps):
    """Steps to push where it costs the policy most, at a rate of their own."""

    loss_figures = ("adversary_loss", "kl", "adversary_std")

    def __init__(self, adversary: Adversary, storage: SequenceStorage, device: str):
        self.adversary = adversary
        super().__init__({"adversary": adversary}, storage, device, ALONE)

    def may_idle(self) -> bool:
        return True  # A minibatch may be without a push.

    def loss(self, batch: Minibatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Return PPO's surrogate on the negated advantage, over steps with a push."""
        adversary, obs = self.adversary, batch.observations
        pushed, angle, *before = obs[PUSH].split(1, dim=-1)
        counts = pushed if batch.weights is None else pushed * batch.weights
        # Such that the mean over the minibatch is one over its pushes.
        counts = (counts / counts.mean().clamp(min=1e-8)).squeeze(-1)
        advantages = batch.advantages.squeeze(-1)
        gain = weighted_mean(advantages, counts) - advantages
        assert adversary.distribution is not None
        # Unchecked: a check would wait for the device.
        drawn_from = torch.distributions.Normal(*before, validate_args=False)
        log_prob = drawn_from.log_prob(angle).squeeze(-1)
        adversary.distribution.update(adversary(obs))
        own = adversary.output_distribution_params
        loss, _ = surrogate_loss(
            adversary.get_output_log_prob(angle), log_prob, gain, self.cfg.clip, counts
        )
        kl = adversary.get_kl_divergence(tuple(before), own).detach()
        figures = {
            "adversary_loss": loss,
            "kl": weighted_mean(kl, counts),
            "adversary_std": adversary.output_std.mean(),
        }
        return loss, figures


class HistorySteps(GuardedSteps):
    """Steps of the history's encoder towards the context's latents, in both modes."""

    loss_figures = ("latent_error", "epinet_loss")

    def __init__(
        self,
        actor: GramActor,
        context: ContextEncoder,
        storage: SequenceStorage,
        device: str,
        cfg: GramCfg,
    ):
        self.actor, self.context = actor, context
        self.num_samples = cfg.epinet_samples
        # By the name that the actor's own tensors have: they are a part of it.
        super().__init__({"actor.history": actor.history}, storage, device, ALONE)
        self.cfg = replace(self.cfg, schedule="fixed")

    def loss(self, batch: Minibatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the guesses' squared error, and the square of what the epinet adds."""
        obs, weights = batch.observations, batch.weights
        per_step = None if weights is None else weights.squeeze(-1)
        with torch.no_grad():
            target = self.context(obs)
        indices = torch.randn(self.num_samples, target.shape[-1], device=target.device)
        latent, added = self.actor.history(obs[HISTORY], indices)
        error = (target - latent).square().sum(dim=-1)
        excess = added.square().sum(dim=-1).mean(dim=-1)
        figures = {
            "latent_error": weighted_mean(error, per_step),
            "epinet_loss": weighted_mean(excess, per_step),
        }
        return figures["latent_error"] + figures["epinet_loss"], figures
