"""PPO: rsl_rl's, with whole sequences, a bounded rate and guarded steps."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

import torch
from rsl_rl.algorithms import PPO
from rsl_rl.models import MLPModel
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict
from torch import Tensor, nn

from horizon_rl.learning.config import PpoCfg
from horizon_rl.learning.losses import adapted_rate, surrogate_loss, value_loss
from horizon_rl.learning.optimizer import GuardedAdam
from horizon_rl.learning.storage import SequenceStorage
from horizon_rl.learning.transformer import TransformerActor

MEANS = (
    "surrogate",
    "value_loss",
    "entropy",
    "kl",
    "std",
    "clip_fraction",
    "actor_grad_norm",
    "critic_grad_norm",
)
"""Figures that are averaged over an update's minibatches."""
MAX_FIRST_KL = 1e-6


class NonFiniteError(ArithmeticError):
    """A gradient was not finite; neither it nor what followed changed a weight."""


class Learner(PPO):
    """Collects rollouts and learns from them, waiting for the device once an update.

    Upstream's `PPO` with its own `update`: figures, the learning rate and the check of
    gradients stay on the device until the last minibatch.
    """

    def __init__(
        self,
        actor: MLPModel,
        critic: MLPModel,
        storage: SequenceStorage,
        cfg: PpoCfg,
        device: str,
    ):
        super().__init__(
            actor,
            critic,
            storage,
            num_learning_epochs=cfg.num_epochs,
            num_mini_batches=cfg.num_minibatches,
            clip_param=cfg.clip,
            gamma=cfg.gamma,
            lam=cfg.lam,
            value_loss_coef=cfg.value_coef,
            entropy_coef=cfg.entropy_coef,
            learning_rate=cfg.learning_rate,
            max_grad_norm=cfg.max_grad_norm,
            use_clipped_value_loss=cfg.clip_value_loss,
            schedule=cfg.schedule,
            desired_kl=cfg.target_kl,
            device=device,
        )
        self.cfg = cfg
        self.storage: SequenceStorage = storage
        params = chain(actor.parameters(), critic.parameters())
        self.optimizer: GuardedAdam = GuardedAdam(params, cfg.learning_rate, device)

    @property
    def models(self) -> dict[str, MLPModel]:
        """What learns, by name."""
        return {"actor": self._raw_actor, "critic": self._raw_critic}

    def act(self, obs: TensorDict) -> Tensor:
        """Sample actions [n, -]; the first call after an update begins a rollout."""
        if self.storage.step == 0 and isinstance(self._raw_actor, TransformerActor):
            self._raw_actor.begin_rollout(self.storage.num_envs)
        return super().act(obs)

    def cut(self, mask: Tensor) -> None:
        """End episodes from outside: worlds in `mask` [n] were started anew.

        To be called between `process_env_step` and `act` where the environment reported
        no `done`, as in a forced recovery.
        """
        self.storage.cut(mask, self.gamma)
        self.actor.reset(mask)

    def forget(self) -> None:
        """Drop the rollout and the past of all worlds; what was learned stays."""
        self.storage.clear()
        self.transition.clear()
        self.actor.reset()
        self.critic.reset()

    def update(self) -> dict[str, float]:
        """Learn from a full rollout and return figures about it.

        Besides the means of `MEANS`: `first_kl` of the first minibatch, where policy
        and rollout must still agree, and `learning_rate` at the end.

        Raises:
            NonFiniteError: A gradient was not finite. The step was refused and so were
                the later ones; rollout and histories are gone, weights are finite.
        """
        self.optimizer.rate.fill_(self.learning_rate)
        self.optimizer.found_inf = torch.zeros((), device=self.device)
        table = torch.stack([self._learn_from(batch) for batch in self._minibatches()])
        rows = table.tolist()  # The one time that the host waits.
        if rows[-1][-1]:
            raise self._refuse(rows)
        first_kl = rows[0][MEANS.index("kl")]
        if self.cfg.check_first_kl and not abs(first_kl) < MAX_FIRST_KL:
            raise AssertionError(
                f"the rollout's policy is not the update's: KL {first_kl:.1e} in the"
                f" first minibatch, {MAX_FIRST_KL:.0e} allowed"
            )
        # In single precision the cap itself may round up.
        self.learning_rate = min(rows[-1][-2], self.cfg.max_learning_rate)
        # Only now: statistics that changed between rollout and update would shift the
        # ratio from 1.
        obs = self.storage.observations.flatten(0, 1)
        self.actor.update_normalization(obs)
        self.critic.update_normalization(obs)
        self.storage.clear()
        means = (sum(column) / len(rows) for column in zip(*rows, strict=True))
        figures = dict(zip(MEANS, means, strict=False))
        return figures | {"first_kl": first_kl, "learning_rate": self.learning_rate}

    def _minibatches(self) -> Iterable[RolloutStorage.Batch]:
        generate = (
            self.storage.recurrent_mini_batch_generator
            if self.actor.is_recurrent
            else self.storage.mini_batch_generator
        )
        count, epochs = self.num_mini_batches, self.num_learning_epochs
        if not self.cfg.reshuffle:
            return generate(count, epochs)
        return chain.from_iterable(generate(count, 1) for _ in range(epochs))

    def _learn_from(self, batch: RolloutStorage.Batch) -> Tensor:
        """Take one step; return `MEANS`, the rate and whether it was refused."""
        loss, figures = self._loss(batch)
        cfg, rate = self.cfg, self.optimizer.rate
        if cfg.schedule == "adaptive":
            low, high = cfg.min_learning_rate, cfg.max_learning_rate
            rate.copy_(adapted_rate(rate, figures["kl"], cfg.target_kl, low, high))
        self.optimizer.zero_grad()
        loss.backward()
        for name, model in self.models.items():
            norm = nn.utils.clip_grad_norm_(model.parameters(), self.max_grad_norm)
            figures[f"{name}_grad_norm"] = norm
            # Once refused, always refused: until the host knows, nothing may follow.
            self.optimizer.found_inf = torch.maximum(
                self.optimizer.found_inf, (~norm.isfinite()).float()
            )
        self.optimizer.step()
        row = [figures[name] for name in MEANS]
        return torch.stack([*row, rate.clone(), self.optimizer.found_inf]).detach()

    # Any: upstream types every field of a batch as optional.
    def _loss(self, batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss of a minibatch and figures about it, all on the device."""
        actor, cfg = self.actor, self.cfg
        actor(
            batch.observations,
            hidden_state=batch.hidden_states[0],
            stochastic_output=True,
        )
        surrogate, clip_fraction = surrogate_loss(
            actor.get_output_log_prob(batch.actions),
            batch.old_actions_log_prob.squeeze(-1),
            batch.advantages.squeeze(-1),
            cfg.clip,
        )
        values = value_loss(
            self.critic(batch.observations),
            batch.values,
            batch.returns,
            cfg.clip if cfg.clip_value_loss else None,
        )
        entropy = actor.output_entropy.mean()
        with torch.no_grad():
            kl = actor.get_kl_divergence(
                batch.old_distribution_params, actor.output_distribution_params
            ).mean()
        loss = surrogate + cfg.value_coef * values - cfg.entropy_coef * entropy
        return loss, {
            "surrogate": surrogate,
            "value_loss": values,
            "entropy": entropy,
            "kl": kl,
            "std": actor.output_std.mean(),
            "clip_fraction": clip_fraction,
        }

    def _refuse(self, rows: list[list[float]]) -> NonFiniteError:
        """Clean up after a refused step and say what was wrong."""
        number = next(i for i, row in enumerate(rows) if row[-1])
        storage = self.storage
        suspects = {f"observations '{k}'": v for k, v in storage.observations.items()}
        suspects |= {"actions": storage.actions, "rewards": storage.rewards}
        suspects |= {"values": storage.values, "returns": storage.returns}
        if storage.history is not None:
            suspects["history"] = storage.history.raw
        culprits = [k for k, v in suspects.items() if not v.isfinite().all()]
        self.forget()
        return NonFiniteError(
            f"gradient not finite in minibatch {number + 1} of {len(rows)}: refused,"
            " and with it the rest of the update. Not finite in the rollout:"
            f" {', '.join(culprits) or 'nothing, so the loss itself overflowed'}"
        )
