"""The gradient steps of a PPO update, which stay on the device until the last one."""

from collections.abc import Mapping
from itertools import chain
from typing import Any, Protocol

import torch
from rsl_rl.models import MLPModel
from torch import Tensor, nn

from horizon_rl.learning.losses import (
    adapted_rate,
    surrogate_loss,
    value_loss,
    weighted_mean,
)
from horizon_rl.learning.networks import Actor
from horizon_rl.learning.storage import Minibatch, SequenceStorage
from horizon_rl.support.graphs import Recorded, compiled
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


class GuardedAdam(torch.optim.Adam):
    """Fused Adam that leaves everything as it is while `found_inf` is 1.

    `found_inf` is how torch's gradient scaler tells the fused kernel to skip a step:
    the kernel reads it on the device. The rate is a tensor for the same reason.
    """

    found_inf: Tensor

    def __init__(self, models: Mapping[str, nn.Module], lr: float, device: str):
        """Optimise all parameters of models, which are known by name."""
        self._models = models
        params = [p for model in models.values() for p in model.parameters()]
        # A CUDA graph may record a step; torch's warning is for when none does.
        on_gpu = torch.device(device).type == "cuda"
        rate = torch.tensor(lr, device=device)
        super().__init__(params, lr=rate, fused=True, capturable=on_gpu)
        self._warned_capturable_if_run_uncaptured = True
        self.found_inf = torch.zeros((), device=device)
        # Torch makes the moments at the first step. Made now, there is one set of
        # tensors from the start for snapshots and checkpoints to hold.
        for param in params:
            self.state[param] = {
                "step": torch.zeros((), device=device),
                "exp_avg": torch.zeros_like(param),
                "exp_avg_sq": torch.zeros_like(param),
            }

    @property
    def rate(self) -> Tensor:
        """The learning rate, a scalar on the device; write into it to change it."""
        return self.param_groups[0]["lr"]

    def step_unless(self, idle: Tensor) -> None:
        """Take a step, but none where `idle` is true: nor does momentum go on."""
        refused = self.found_inf.clone()
        self.found_inf.copy_(torch.maximum(refused, idle))
        self.step()
        self.found_inf.copy_(refused)

    def named_tensors(self) -> dict[str, Tensor]:
        """Return the step counter and the moments of every parameter."""
        return {
            f"adam.{prefix}.{name}.{key}": value
            for prefix, model in self._models.items()
            for name, param in model.named_parameters()
            for key, value in self.state[param].items()
        }


class GradientSteps:
    """Takes one step per minibatch, along gradients averaged over the ranks."""

    loss_figures: tuple[str, ...] = LOSS_FIGURES
    """Figures that `loss` returns, without those of extra losses."""

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
    ):
        """Allocate all that recorded steps read and write.

        The storage brings the settings of PPO. With `compiles`, a GPU compiles the loss.
        An `optimizer` of both networks may be that of other steps.
        """
        self.actor, self.critic, self.storage = actor, critic, storage
        self.cfg, self.ranks, self.extra_losses = storage.cfg, ranks, extra_losses
        self.models: dict[str, MLPModel] = {"actor": actor, "critic": critic}
        for model in self.models.values():
            model.to(device)
        self.device = torch.device(device)
        # On the device: recorded steps read what it is at the time.
        self.entropy_coef = torch.tensor(self.cfg.entropy_coef, device=device)
        self._params = [*actor.parameters(), *critic.parameters()]
        self.optimizer = optimizer or GuardedAdam(
            self.models, self.cfg.learning_rate, device
        )
        extra_figures = chain.from_iterable(loss.figures for loss in extra_losses)
        self._loss_figures = (*self.loss_figures, *extra_figures)
        norms = "actor_grad_norm", "critic_grad_norm"
        self._columns = (*self._loss_figures, *norms, "learning_rate", "refused")
        # Two recordings: ranks average in between, which none should contain.
        self.compute_gradients = Recorded(self._compute_gradients, device)
        self.apply_gradients = Recorded(self._apply_gradients, device)
        self._compiled_loss = compiled(self.loss, device, compiles)
        self.ids = torch.zeros(storage.minibatch_size, dtype=torch.long, device=device)
        """The current minibatch."""
        self._figures_row = torch.zeros(len(self._columns), device=device)
        sizes = [param.numel() for param in self._params] + [len(self._loss_figures)]
        self.gradient_and_figures = torch.zeros(sum(sizes), device=device)
        """A minibatch's gradient, then the figures of its loss."""
        *gradients, self._figures = self.gradient_and_figures.split(sizes)
        self._gradients = [
            flat.view_as(param)
            for flat, param in zip(gradients, self._params, strict=True)
        ]

    def run(self, learning_rate: float) -> list[dict[str, float]]:
        """Take all steps of an update; return figures of every minibatch.

        Besides those of the loss: norms of the gradients before clipping, the learning
        rate of the step, and whether a gradient was `refused` up to it.
        """
        self.optimizer.rate.fill_(learning_rate)
        self.optimizer.found_inf.zero_()
        if self.cfg.bf16:
            self.recompute_log_probs()
        table = []
        for ids in self.storage.minibatch_ids():
            self.ids.copy_(ids)
            self.compute_gradients()
            self.ranks.average(self.gradient_and_figures)
            self.apply_gradients()
            table.append(self._figures_row.clone())
        rows = torch.stack(table).tolist()  # The one time that the host waits.
        return [dict(zip(self._columns, row, strict=True)) for row in rows]

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

    def _compute_gradients(self) -> None:
        loss, figures = self._compiled_loss(self.storage.minibatch(self.ids))
        self.optimizer.zero_grad()
        loss.backward()
        # Any: a gradient may be none at all, but not after a backward pass.
        computed: list[Any] = [param.grad for param in self._params]
        computed += [figures[name].detach() for name in self._loss_figures]
        flat = [value.flatten() for value in computed]
        torch.cat(flat, out=self.gradient_and_figures)

    @torch.no_grad()
    def _apply_gradients(self) -> None:
        """Take a step along the computed gradient, and write the row of figures."""
        cfg, rate = self.cfg, self.optimizer.rate
        figures: dict[str, Tensor] = {}
        figures.update(zip(self._loss_figures, self._figures, strict=True))
        if cfg.schedule == "adaptive":
            low, high = cfg.min_learning_rate, cfg.max_learning_rate
            rate.copy_(adapted_rate(rate, figures["kl"], cfg.target_kl, low, high))
        for param, gradient in zip(self._params, self._gradients, strict=True):
            param.grad = gradient
        for name, model in self.models.items():
            norm = nn.utils.clip_grad_norm_(model.parameters(), cfg.max_grad_norm)
            figures[f"{name}_grad_norm"] = norm
            # Once refused, always refused: until the host knows, nothing may follow.
            refused = torch.maximum(self.optimizer.found_inf, ~norm.isfinite())
            self.optimizer.found_inf.copy_(refused)
        if self.storage.weights is None:
            self.optimizer.step()
        else:
            # All weights may be 0. As norms, since all ranks must do the same.
            norms = [figures[f"{name}_grad_norm"] for name in self.models]
            self.optimizer.step_unless(torch.stack(norms).sum() == 0.0)
        figures |= {"learning_rate": rate, "refused": self.optimizer.found_inf}
        self._figures_row.copy_(torch.stack([figures[name] for name in self._columns]))
