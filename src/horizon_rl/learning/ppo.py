"""PPO: rsl_rl's, with whole sequences, a bounded rate and guarded steps."""

from functools import partial
from itertools import chain
from typing import Any

import torch
from rsl_rl.models import MLPModel
from tensordict import TensorDict
from torch import Tensor

from horizon_rl.learning.losses import fill_returns
from horizon_rl.learning.steps import GuardedSteps
from horizon_rl.learning.update import GradientSteps
from horizon_rl.support.errors import NonFiniteError
from horizon_rl.support.graphs import Recorded

MAX_FIRST_KL = 1e-6
MAX_FIRST_KL_BF16 = 1e-4


class Ppo:
    """Collects rollouts and learns from them, waiting for the device once an update.

    Acting, returns and the step on a minibatch go straight from and into the storage,
    so that a GPU can replay them as graphs; figures, the learning rate and the check of
    gradients stay on the device until the last minibatch.

    Of several ranks each has its own rollout, and all take the same steps: gradients,
    the KL divergence that steers the rate, the moments of advantages and the statistics
    of observations are those of all rollouts together.
    """

    def __init__(self, steps: GradientSteps):
        """Collect for these steps, with their networks, storage and settings."""
        self.gradient_steps, self.cfg, self.ranks = steps, steps.cfg, steps.ranks
        self.actor, self.critic, self.storage = steps.actor, steps.critic, steps.storage
        self.models = steps.models
        self.num_steps, self.learning_rate = self.cfg.num_steps, self.cfg.learning_rate
        self._device = steps.device
        # Recorded for each step apart: its slots lie elsewhere in every one.
        self._acting = [
            Recorded(partial(self._act_at, step), self._device)
            for step in range(self.num_steps)
        ]
        self._returns = Recorded(self._compute_returns, self._device)

    def optimizer_tensors(self) -> dict[str, Tensor]:
        return self.gradient_steps.optimizer.named_tensors()

    def act(self, obs: TensorDict) -> Tensor:
        """Sample actions [n, -]; the first call after an update begins a rollout.

        They are a view of the storage: valid until the next rollout, not to be changed.
        """
        storage, step = self.storage, self.storage.step
        if step == 0:
            storage.begin(self.actor.begin_rollout(storage.num_envs))
        for name, values in storage.observations.items():
            values[step].copy_(obs[name])
        self._acting[step]()
        # A replay has added a token, but Python was not there to count it.
        self.actor.set_step(step + 1)
        return storage.actions[step]

    def process_env_step(
        self, obs: TensorDict, rewards: Tensor, dones: Tensor, extras: dict[str, Tensor]
    ) -> None:
        """Store what came of the actions: a timeout is worth what the critic expects."""
        storage, step = self.storage, self.storage.step
        storage.rewards[step, :, 0] = rewards
        if "time_outs" in extras:
            ended = extras["time_outs"].to(self._device).unsqueeze(1)
            storage.rewards[step] += self.cfg.gamma * storage.values[step] * ended
        storage.dones[step, :, 0] = dones
        if "trains" in extras:
            storage.weigh(extras["trains"])
        storage.step += 1
        self.actor.reset(dones)

    def compute_returns(self, obs: TensorDict) -> None:
        """Compute returns and advantages of a full rollout that `obs` follows."""
        for name, values in self.storage.last_observations.items():
            values.copy_(obs[name])
        self._returns()
        advantages = self.storage.advantages
        weights = self.storage.weights
        mean, std = (
            self.ranks.moments(advantages)
            if weights is None
            else self._weighted_moments(weights)
        )
        advantages.sub_(mean).div_(std + 1e-8)

    def value_losses(self) -> Tensor:
        """See `Scoring`; to be called after `compute_returns`."""
        gains = self.storage.returns - self.storage.values
        return gains.squeeze(-1).clamp(min=0.0)

    def schedule(self, progress: float) -> None:
        self.gradient_steps.entropy_coef.fill_(self.cfg.entropy_at(progress))
        self.gradient_steps.max_rate.fill_(self.cfg.max_rate_at(progress))

    def forget(self) -> None:
        """Drop the rollout and the past of all worlds; what was learned stays."""
        self.storage.clear()
        self.actor.reset()

    def update(self) -> dict[str, float]:
        """Learn from a full rollout and return the means of the minibatches' figures.

        Besides: `first_kl` of the first minibatch, where policy and rollout must still
        agree, and `learning_rate` at the end.

        Raises:
            NonFiniteError: A gradient was not finite. The step was refused and so were
                the later ones; rollout and histories are gone, weights are finite.
        """
        rows = self.take_steps(self.gradient_steps, self.learning_rate)
        first_kl = rows[0]["kl"]
        allowed = MAX_FIRST_KL_BF16 if self.cfg.bf16 else MAX_FIRST_KL
        if self.cfg.check_first_kl and not abs(first_kl) < allowed:
            raise AssertionError(
                f"the rollout's policy is not the update's: KL {first_kl:.1e} in the"
                f" first minibatch, {allowed:.0e} allowed"
            )
        # In single precision the cap itself may round up.
        rate = min(rows[-1]["learning_rate"], self.cfg.max_learning_rate)
        self.learning_rate = rate
        # Only now: statistics that changed between rollout and update would shift the
        # ratio from 1. Upstream merges those of all ranks.
        obs = self.storage.observations.flatten(0, 1)
        for model in self.models.values():
            update_normalizer(model, obs)
        self.storage.clear()
        return mean_figures(rows) | {"first_kl": first_kl, "learning_rate": rate}

    def take_steps(self, steps: GuardedSteps, rate: float) -> list[dict[str, float]]:
        """Take all of an update's steps; return the figures of every minibatch.

        Raises:
            NonFiniteError: As in `update`.
        """
        rows = steps.run(rate)
        if rows[-1]["refused"]:
            raise self._refuse([bool(row["refused"]) for row in rows])
        return rows

    @torch.no_grad()
    def _act_at(self, step: int) -> None:
        """Sample actions for a step's observations, and store what PPO asks of them."""
        storage, actor = self.storage, self.actor
        obs = storage.observations[step]
        actor.set_step(step)
        actions = actor(obs, stochastic_output=True)
        storage.actions[step] = actions
        storage.values[step] = self.critic(obs)
        storage.actions_log_prob[step, :, 0] = actor.get_output_log_prob(actions)
        parameters = actor.output_distribution_params
        for own, given in zip(storage.distribution_params, parameters, strict=True):
            own[step] = given

    @torch.no_grad()
    def _compute_returns(self) -> None:
        storage, cfg = self.storage, self.cfg
        rollout = storage.rewards, storage.values, storage.dones
        last_values = self.critic(storage.last_observations)
        fill_returns(storage.returns, *rollout, last_values, cfg.gamma, cfg.lam)
        storage.advantages.copy_(storage.returns - storage.values)

    def _weighted_moments(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Scale weights to a mean of 1; return the moments of what counts, of all ranks."""
        advantages = self.storage.advantages

        def average(values: Tensor) -> Tensor:
            mean = values.mean()
            self.ranks.average(mean)
            return mean

        # They may all be 0; and stay so.
        weights.div_(average(weights).clamp(min=1e-8))
        mean = average(weights * advantages)
        return mean, average(weights * (advantages - mean).square()).sqrt()

    def _refuse(self, refused: list[bool]) -> NonFiniteError:
        """Clean up after a refused step and say what was wrong."""
        storage = self.storage
        suspects = {f"observations '{k}'": v for k, v in storage.observations.items()}
        for name in ("actions", "rewards", "values", "returns"):
            suspects[name] = getattr(storage, name)
        own = [k for k, v in suspects.items() if not v.isfinite().all()]
        culprits = dict.fromkeys(chain.from_iterable(self.ranks.gather(own)))
        self.forget()
        return NonFiniteError(
            f"gradient not finite in minibatch {refused.index(True) + 1} of"
            f" {len(refused)}: refused, and with it the rest of the update. Not finite"
            " in the rollout:"
            f" {', '.join(culprits) or 'nothing, so the loss itself overflowed'}"
        )


def mean_figures(rows: list[dict[str, float]]) -> dict[str, float]:
    """Return the means of minibatches' figures that are about the loss."""
    figures = {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}
    del figures["refused"], figures["learning_rate"]
    return figures


def update_normalizer(model: MLPModel, obs: TensorDict) -> None:
    """Learn the observations' statistics, in the tensors that recorded steps read."""
    normalizer: Any = model.obs_normalizer
    std = normalizer._std
    model.update_normalization(obs)
    # Upstream puts a new tensor in its place.
    normalizer._std = std.copy_(normalizer._std)
