"""PPO's loss of a minibatch, and the gradient steps along it."""

from collections.abc import Mapping
from itertools import chain
from typing import Protocol

import torch
from rsl_rl.models import MLPModel
from torch import Tensor

from horizon_rl.learning.losses import surrogate_loss, value_loss, weighted_mean
from horizon_rl.learning.networks import Actor
from horizon_rl.learning.steps import GuardedAdam, GuardedSteps
from horizon_rl.learning.storage import Minibatch, SequenceStorage
from horizon_rl.support.ranks import Ranks

LOSS_FIGURES = ("surrogate", "value_loss", "entropy", "kl", "std", "clip_fraction")
"""Figures of a minibatch's loss."""


class ExtraLoss(Protocol):
    """A term that is added to PPO's loss, as in distillation."""

    @property
    def figures(self) -> tuple[str, ...]:
        """Names of the figures that a call returns."""
        ...

    def __call__(
        self, batch: Minibatch, actor: Actor, critic: MLPModel
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return a scalar to add to the loss, and scalars to report by name.

        The actor has just seen the minibatch: `actor.output_mean` is the mean of its
        actions, with gradient. A GPU records the call once and replays it, so tensors
        that it reads must stay in place and nothing may wait for the device.
        """
        ...


class GradientSteps(GuardedSteps):
    """The steps of a PPO update."""

    loss_figures = LOSS_FIGURES

    def __init__(
        self,
        actor: Actor,
        critic: MLPModel,
        storage: SequenceStorage,
        device: str,
        ranks: Ranks,
        extra_losses: tuple[ExtraLoss, ...] = (),
        compiles: bool = False,
        optimizer: GuardedAdam | None = None,
        others: Mapping[str, MLPModel] | None = None,
    ):
        """See `GuardedSteps`; `others` are networks that both of these learn through."""
        self.actor, self.critic, self.extra_losses = actor, critic, extra_losses
        extra_figures = chain.from_iterable(loss.figures for loss in extra_losses)
        self.loss_figures = (*self.loss_figures, *extra_figures)
        # On the device, as the learning rate's bound is.
        self.entropy_coef = torch.tensor(storage.cfg.entropy_coef, device=device)
        models = {"actor": actor, "critic": critic, **(others or {})}
        super().__init__(models, storage, device, ranks, compiles, optimizer)
        self.models: dict[str, MLPModel] = models

    def run(self, learning_rate: float) -> list[dict[str, float]]:
        if self.cfg.bf16:
            self.recompute_log_probs()
        return super().run(learning_rate)

    @torch.no_grad()
    def recompute_log_probs(self) -> None:
        """Replace the stored policy by the same one in the update's precision.

        Actions were drawn in single precision: against that, every ratio would be off
        by the rounding of bfloat16, and its KL divergence would steer the rate.
        """
        storage, whole = self.storage, self.storage.whole_worlds
        stored = (storage.actions_log_prob, *storage.distribution_params)
        total = stored[0].shape[1] if whole else stored[0][..., 0].numel()
        for ids in torch.arange(total, device=self.device).split(len(self.ids)):
            batch = storage.minibatch(ids)
            self.evaluate_policy(batch)
            log_prob = self.actor.get_output_log_prob(batch.actions).unsqueeze(-1)
            computed = (log_prob, *self.actor.output_distribution_params)
            for own, new in zip(stored, computed, strict=True):
                (own if whole else own.flatten(0, 1))[(..., ids, slice(None))] = new

    def evaluate_policy(self, batch: Minibatch) -> None:
        """Set the actor's distribution to that of a minibatch's actions.

        As upstream does, but without drawing actions that nobody takes.
        """
        with self._precision():
            mean = self.actor(batch.observations, hidden_state=batch.past)
        assert self.actor.distribution is not None
        self.actor.distribution.update(mean.float())

    def loss(self, batch: Minibatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss of a minibatch and figures about it, all on the device."""
        actor, cfg, weights = self.actor, self.cfg, batch.weights
        per_step = None if weights is None else weights.squeeze(-1)
        self.evaluate_policy(batch)
        surrogate, clip_fraction = surrogate_loss(
            actor.get_output_log_prob(batch.actions),
            batch.old_actions_log_prob.squeeze(-1),
            batch.advantages.squeeze(-1),
            cfg.clip,
            per_step,
        )
        values = self.value_error(batch)
        entropy = weighted_mean(actor.output_entropy, per_step)
        loss = surrogate + cfg.value_coef * values - self.entropy_coef * entropy
        figures = {
            "surrogate": surrogate,
            "value_loss": values,
            "entropy": entropy,
            "kl": self.divergence(batch),
            "std": actor.output_std.mean(),
            "clip_fraction": clip_fraction,
        }
        for extra_loss in self.extra_losses:
            extra, extra_figures = extra_loss(batch, actor, self.critic)
            loss = loss + extra
            figures |= extra_figures
        return loss, figures

    def value_error(self, batch: Minibatch) -> Tensor:
        """Return the loss of the critic."""
        with self._precision():
            value = self.critic(batch.observations)
        clip = self.cfg.clip if self.cfg.clip_value_loss else None
        old, returns = batch.values, batch.returns
        return value_loss(value.float(), old, returns, clip, batch.weights)

    @torch.no_grad()
    def divergence(self, batch: Minibatch) -> Tensor:
        """Return how far the evaluated policy has moved from the one that acted."""
        before, actor = batch.old_distribution_params, self.actor
        kl = actor.get_kl_divergence(before, actor.output_distribution_params)
        weights = batch.weights
        return weighted_mean(kl, None if weights is None else weights.squeeze(-1))

    def _precision(self) -> torch.autocast:
        # Without its cache: what it casts first, for the past, it casts without
        # gradient, and would use again where one is needed.
        return torch.autocast(
            self.device.type,
            torch.bfloat16,
            enabled=self.cfg.bf16,
            cache_enabled=False,
        )
