"""PPO: rsl_rl's, with whole sequences, a bounded rate and guarded steps."""

from collections.abc import Iterable
from functools import partial
from itertools import chain
from typing import Any

import torch
from rsl_rl.algorithms import PPO
from rsl_rl.models import MLPModel
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict
from torch import Tensor, nn

from horizon_rl.learning.config import PpoCfg
from horizon_rl.learning.history import Cache
from horizon_rl.learning.losses import adapted_rate, surrogate_loss, value_loss
from horizon_rl.learning.optimizer import GuardedAdam
from horizon_rl.learning.storage import SequenceStorage
from horizon_rl.learning.transformer import TransformerActor
from horizon_rl.support.errors import NonFiniteError
from horizon_rl.support.graphs import Recorded, compiled
from horizon_rl.support.ranks import ALONE, Ranks

LOSS_FIGURES = ("surrogate", "value_loss", "entropy", "kl", "std", "clip_fraction")
"""Figures of a minibatch's loss."""
MEANS = (*LOSS_FIGURES, "actor_grad_norm", "critic_grad_norm")
"""Figures that are averaged over an update's minibatches."""
MAX_FIRST_KL = 1e-6
MAX_FIRST_KL_BF16 = 1e-4


class Learner(PPO):
    """Collects rollouts and learns from them, waiting for the device once an update.

    Upstream's `PPO` with its own `update`: figures, the learning rate and the check of
    gradients stay on the device until the last minibatch. Acting, returns and the step
    on a minibatch go straight from and into the storage, so that a GPU can replay them
    as graphs.

    Of several ranks each has its own rollout, and all take the same steps: gradients,
    the KL divergence that steers the rate, the moments of advantages and the statistics
    of observations are those of all rollouts together.
    """

    def __init__(
        self,
        actor: MLPModel,
        critic: MLPModel,
        storage: SequenceStorage,
        cfg: PpoCfg,
        device: str,
        ranks: Ranks = ALONE,
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
        self.cfg, self.ranks = cfg, ranks
        self.storage: SequenceStorage = storage
        params = [*actor.parameters(), *critic.parameters()]
        self._params = params
        self.optimizer: GuardedAdam = GuardedAdam(params, cfg.learning_rate, device)
        self._cache: Cache | None = None
        self._record_acting()
        self._returns = Recorded(self._find_returns, device)
        # Two, since ranks average in between, which no recording should hold.
        self._look = Recorded(self._find_gradients, device)
        self._step = Recorded(self._follow_gradients, device)
        self._weigh = compiled(self._loss, device, "update")
        size = storage.minibatch_size(cfg.num_minibatches, actor.is_recurrent)
        self._ids = torch.zeros(size, dtype=torch.long, device=device)
        self._row = torch.zeros(len(MEANS) + 2, device=device)
        self._advantages = torch.zeros_like(storage.advantages)
        sizes = [param.numel() for param in params] + [len(LOSS_FIGURES)]
        self._found = torch.zeros(sum(sizes), device=device)
        """A minibatch's gradient, then its `LOSS_FIGURES`."""
        *gradients, self._figures = self._found.split(sizes)
        self._gradients = [
            flat.view_as(param) for flat, param in zip(gradients, params, strict=True)
        ]

    @property
    def models(self) -> dict[str, MLPModel]:
        """What learns, by name."""
        return {"actor": self._raw_actor, "critic": self._raw_critic}

    def act(self, obs: TensorDict) -> Tensor:
        """Sample actions [n, -]; the first call after an update begins a rollout.

        They are a view of the storage: valid until the next rollout, not to be changed.
        """
        storage, step = self.storage, self.storage.step
        if step == 0:
            self._begin_rollout()
        for name, values in storage.observations.items():
            values[step].copy_(obs[name])
        self._acting[step]()
        if self._cache is not None:
            # A replay has added a token, but Python was not there to count it.
            self._cache.num_steps = step + 1
        return storage.actions[step]

    def process_env_step(
        self, obs: TensorDict, rewards: Tensor, dones: Tensor, extras: dict[str, Tensor]
    ) -> None:
        """Store what came of the actions: a timeout is worth what the critic expects."""
        storage, step = self.storage, self.storage.step
        storage.rewards[step, :, 0] = rewards
        if "time_outs" in extras:
            ended = extras["time_outs"].to(self.device).unsqueeze(1)
            storage.rewards[step] += self.gamma * storage.values[step] * ended
        storage.dones[step, :, 0] = dones
        storage.step += 1
        self.actor.reset(dones)

    def compute_returns(self, obs: TensorDict) -> None:
        """Find returns and advantages of a full rollout that `obs` follows."""
        for name, values in self.storage.last_observations.items():
            values.copy_(obs[name])
        self._returns()
        mean, std = self.ranks.moments(self._advantages)
        self._advantages.sub_(mean).div_(std + 1e-8)

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
        self.optimizer.found_inf.zero_()
        if self.cfg.bf16:
            self._look_anew()
        table = []
        for ids in self._minibatch_ids():
            self._ids.copy_(ids)
            self._look()
            self.ranks.average(self._found)
            self._step()
            table.append(self._row.clone())
        rows = torch.stack(table).tolist()  # The one time that the host waits.
        if rows[-1][-1]:
            raise self._refuse(rows)
        first_kl = rows[0][MEANS.index("kl")]
        allowed = MAX_FIRST_KL_BF16 if self.cfg.bf16 else MAX_FIRST_KL
        if self.cfg.check_first_kl and not abs(first_kl) < allowed:
            raise AssertionError(
                f"the rollout's policy is not the update's: KL {first_kl:.1e} in the"
                f" first minibatch, {allowed:.0e} allowed"
            )
        # In single precision the cap itself may round up.
        self.learning_rate = min(rows[-1][-2], self.cfg.max_learning_rate)
        # Only now: statistics that changed between rollout and update would shift the
        # ratio from 1. Upstream merges those of all ranks.
        obs = self.storage.observations.flatten(0, 1)
        for model in self.models.values():
            _update_normalizer(model, obs)
        self.storage.clear()
        means = (sum(column) / len(rows) for column in zip(*rows, strict=True))
        figures = dict(zip(MEANS, means, strict=False))
        return figures | {"first_kl": first_kl, "learning_rate": self.learning_rate}

    def _begin_rollout(self) -> None:
        actor = self._raw_actor
        if not isinstance(actor, TransformerActor):
            return
        actor.begin_rollout(self.storage.num_envs)
        assert actor.live is not None
        self.storage.remember(actor.live.history())
        if self._cache is not actor.live:
            self._cache = actor.live
            self._record_acting()

    def _record_acting(self) -> None:
        """Record acting apart for each step: the cache's slots lie elsewhere in each."""
        steps = range(self.storage.num_transitions_per_env)
        self._acting = [Recorded(partial(self._act_at, i), self.device) for i in steps]

    @torch.no_grad()
    def _act_at(self, step: int) -> None:
        """Sample actions for a step's observations, and store what PPO asks of them."""
        storage, actor = self.storage, self.actor
        obs = storage.observations[step]
        if self._cache is not None:
            self._cache.num_steps = step
        actions = actor(obs, stochastic_output=True)
        storage.actions[step] = actions
        storage.values[step] = self.critic(obs)
        storage.actions_log_prob[step, :, 0] = actor.get_output_log_prob(actions)
        parameters = actor.output_distribution_params
        for own, given in zip(storage.distribution_params, parameters, strict=True):
            own[step] = given

    @torch.no_grad()
    def _find_returns(self) -> None:
        storage = self.storage
        super().compute_returns(storage.last_observations)
        # Upstream makes a new tensor; recorded minibatches read the old one. And it has
        # normalised by the moments of this rank alone.
        self._advantages.copy_(storage.returns - storage.values)
        storage.advantages = self._advantages

    def _minibatch_ids(self) -> Iterable[Tensor]:
        count, epochs = self.num_mini_batches, self.num_learning_epochs
        whole = self.actor.is_recurrent
        if not self.cfg.reshuffle:
            return self.storage.minibatch_ids(count, epochs, whole)
        passes = (self.storage.minibatch_ids(count, 1, whole) for _ in range(epochs))
        return chain.from_iterable(passes)

    def _batch(self, ids: Tensor) -> RolloutStorage.Batch:
        whole = self.actor.is_recurrent
        return self.storage.worlds(ids) if whole else self.storage.steps(ids)

    @torch.no_grad()
    def _look_anew(self) -> None:
        """Replace the stored policy by the same one in the update's precision.

        Actions were drawn in single precision: against that, every ratio would be off
        by the rounding of bfloat16, and its KL divergence would steer the rate.
        """
        storage, whole = self.storage, self.actor.is_recurrent
        stored = (storage.actions_log_prob, *storage.distribution_params)
        total = stored[0].shape[1] if whole else stored[0][..., 0].numel()
        for ids in torch.arange(total, device=self.device).split(len(self._ids)):
            batch: Any = self._batch(ids)
            self._look_at(batch)
            log_prob = self.actor.get_output_log_prob(batch.actions).unsqueeze(-1)
            found = (log_prob, *self.actor.output_distribution_params)
            for own, new in zip(stored, found, strict=True):
                (own if whole else own.flatten(0, 1))[(..., ids, slice(None))] = new

    # Any: upstream types every field of a batch as optional.
    def _look_at(self, batch: Any) -> None:
        """Let the actor see a minibatch; its distribution is then that of the actions.

        As upstream does, but without drawing actions that nobody takes.
        """
        with self._precision():
            mean = self.actor(batch.observations, hidden_state=batch.hidden_states[0])
        assert self.actor.distribution is not None
        self.actor.distribution.update(mean.float())

    def _precision(self) -> torch.autocast:
        # Without its cache: what it casts first, for the past, it casts without
        # gradient, and would use again where one is needed.
        return torch.autocast(
            torch.device(self.device).type,
            torch.bfloat16,
            enabled=self.cfg.bf16,
            cache_enabled=False,
        )

    def _find_gradients(self) -> None:
        """Find a minibatch's gradient and figures, and lay them side by side."""
        loss, figures = self._weigh(self._batch(self._ids))
        self.optimizer.zero_grad()
        loss.backward()
        # Any: a gradient may be none at all, but not after a pass back.
        found: list[Any] = [param.grad for param in self._params]
        found += [figures[name].detach() for name in LOSS_FIGURES]
        torch.cat([value.flatten() for value in found], out=self._found)

    @torch.no_grad()
    def _follow_gradients(self) -> None:
        """Take a step along what was found; note `MEANS`, rate and refusal of it."""
        cfg, rate = self.cfg, self.optimizer.rate
        figures: dict[str, Tensor] = {}
        figures.update(zip(LOSS_FIGURES, self._figures, strict=True))
        if cfg.schedule == "adaptive":
            low, high = cfg.min_learning_rate, cfg.max_learning_rate
            rate.copy_(adapted_rate(rate, figures["kl"], cfg.target_kl, low, high))
        for param, gradient in zip(self._params, self._gradients, strict=True):
            param.grad = gradient
        for name, model in self.models.items():
            norm = nn.utils.clip_grad_norm_(model.parameters(), self.max_grad_norm)
            figures[f"{name}_grad_norm"] = norm
            # Once refused, always refused: until the host knows, nothing may follow.
            refused = torch.maximum(self.optimizer.found_inf, ~norm.isfinite())
            self.optimizer.found_inf.copy_(refused)
        self.optimizer.step()
        row = [figures[name] for name in MEANS]
        self._row.copy_(torch.stack([*row, rate, self.optimizer.found_inf]))

    def _loss(self, batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss of a minibatch and figures about it, all on the device."""
        actor, cfg = self.actor, self.cfg
        self._look_at(batch)
        surrogate, clip_fraction = surrogate_loss(
            actor.get_output_log_prob(batch.actions),
            batch.old_actions_log_prob.squeeze(-1),
            batch.advantages.squeeze(-1),
            cfg.clip,
        )
        with self._precision():
            value = self.critic(batch.observations)
        values = value_loss(
            value.float(),
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
        own = [k for k, v in suspects.items() if not v.isfinite().all()]
        culprits = dict.fromkeys(chain.from_iterable(self.ranks.gather(own)))
        self.forget()
        return NonFiniteError(
            f"gradient not finite in minibatch {number + 1} of {len(rows)}: refused,"
            " and with it the rest of the update. Not finite in the rollout:"
            f" {', '.join(culprits) or 'nothing, so the loss itself overflowed'}"
        )


def _update_normalizer(model: MLPModel, obs: TensorDict) -> None:
    """Learn the observations' statistics, in the tensors that recorded steps read."""
    normalizer: Any = model.obs_normalizer
    std = normalizer._std
    model.update_normalization(obs)
    # Upstream puts a new tensor in its place.
    normalizer._std = std.copy_(normalizer._std)
