"""Distillation: a student learns to act as its teachers do, each in its own worlds.

Whoever acts, the teacher of a world labels every step with the action that it would have
taken. Offline, teachers act, and what is learnt from does not depend on the student. By
DAgger (Ross et al. 2011, with beta = 0) the student acts, and is corrected where its own
actions lead it. Later PPO may take over, with the critic that has learnt meanwhile.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from tensordict import TensorDict
from torch import Tensor

from horizon_rl.learning.config import DistillCfg
from horizon_rl.learning.losses import weighted_mean
from horizon_rl.learning.networks import Actor
from horizon_rl.learning.ppo import Ppo
from horizon_rl.learning.storage import Minibatch
from horizon_rl.learning.update import GradientSteps
from horizon_rl.support.graphs import Recorded

TEACHER = "teacher"
"""Group of observations [n, 1]: the number of each world's teacher. No actor reads it."""
MEAN, STD = "teacher_mean", "teacher_std"
"""Groups of a rollout: the distribution of that teacher's actions."""


class ImitationSteps(GradientSteps):
    """Gradient steps of an update that learns from labels, and values from rewards."""

    loss_figures = "imitation", "action_error", "value_loss", "kl", "std"

    def __init__(self, steps: GradientSteps, cfg: DistillCfg, compiles: bool = False):
        """Share networks, storage and optimiser with the steps of PPO."""
        super().__init__(
            steps.actor,
            steps.critic,
            steps.storage,
            str(steps.device),
            steps.ranks,
            compiles=compiles,
            optimizer=steps.optimizer,
        )
        self.distill = cfg
        # The KL divergence that steers PPO says nothing of labels.
        self.cfg = replace(self.cfg, schedule="fixed")

    def run(self, learning_rate: float) -> list[dict[str, float]]:
        """Take all steps of an update, at the rate of the settings."""
        return super().run(self.distill.learning_rate)

    def loss(self, batch: Minibatch) -> tuple[Tensor, dict[str, Tensor]]:
        actor, weights = self.actor, batch.weights
        per_step = None if weights is None else weights.squeeze(-1)
        self.evaluate_policy(batch)
        mean, std = batch.observations[MEAN], batch.observations[STD]
        own, values = actor.output_distribution_params, self.value_error(batch)
        # Of the teacher from the student, as in Rusu et al. 2016: noise is learnt too.
        kl = actor.get_kl_divergence((mean, std), own)
        imitation = weighted_mean(kl, per_step)
        error = (actor.output_mean.detach() - mean).square().mean(dim=-1)
        figures = {
            "imitation": imitation,
            "action_error": weighted_mean(error, per_step).sqrt(),
            "value_loss": values,
            "kl": self.divergence(batch),
            "std": actor.output_std.mean(),
        }
        return imitation + self.cfg.value_coef * values, figures


class Distillation:
    """Learns from teachers, and then perhaps by PPO: see `Algorithm`.

    All teachers act in all worlds, since shapes must not change from step to step; a
    world's own is then picked. Their memories follow the student's rollouts.
    """

    def __init__(
        self,
        ppo: Ppo,
        imitation: ImitationSteps,
        teachers: Sequence[Actor],
        cfg: DistillCfg,
    ):
        """Teach the actor of `ppo`.

        Args:
            ppo: Collects, and takes over; its rollouts have the groups `MEAN` and `STD`,
                and with several teachers `TEACHER`.
            imitation: The steps of its updates until then.
            teachers: In the order of `TEACHER`, with room for a rollout; they stay as
                they are.
            cfg: Who acts, and how long.
        """
        self.ppo, self.teachers, self.cfg = ppo, teachers, cfg
        self.actor, self.models, self.num_steps = ppo.actor, ppo.models, ppo.num_steps
        self.learning_rate = ppo.learning_rate
        """PPO's, for when it takes over; labels are learnt at a rate of their own."""
        self._imitation, self._reinforcement = imitation, ppo.gradient_steps
        device = imitation.device
        for teacher in teachers:
            teacher.to(device).eval().requires_grad_(False)
        self._shown = torch.zeros_like(ppo.storage.actions[0])
        self._labelling = [
            Recorded(partial(self._label_at, step), device)
            for step in range(self.num_steps)
        ]
        self.schedule(0.0)

    @property
    def imitates(self) -> bool:
        """Whether it still learns from labels."""
        return self.ppo.gradient_steps is self._imitation

    def optimizer_tensors(self) -> dict[str, Tensor]:
        return self.ppo.optimizer_tensors()

    def schedule(self, progress: float) -> None:
        begin = self.cfg.ppo_from
        taught = begin is None or progress < begin
        self.ppo.gradient_steps = self._imitation if taught else self._reinforcement
        self.ppo.schedule(progress)

    def act(self, obs: TensorDict) -> Tensor:
        """Return actions [n, -] of the student or, offline, of the worlds' teachers.

        Valid until the next step, not to be changed.
        """
        storage, step = self.ppo.storage, self.ppo.storage.step
        seen = storage.observations[step]
        for name, values in seen.items():
            if name not in (MEAN, STD):
                values.copy_(obs[name])
        if self.imitates:
            self._label(step)
        actions = self.ppo.act(seen)
        shows = self.imitates and self.cfg.mode == "offline"
        return self._shown if shows else actions

    def process_env_step(
        self, obs: TensorDict, rewards: Tensor, dones: Tensor, extras: dict[str, Tensor]
    ) -> None:
        self.ppo.process_env_step(obs, rewards, dones, extras)
        for teacher in self.teachers:
            teacher.reset(dones)

    def compute_returns(self, obs: TensorDict) -> None:
        last = self.ppo.storage.observations[-1]
        self.ppo.compute_returns(obs.copy().update(last.select(MEAN, STD)))

    def update(self) -> dict[str, float]:
        self.ppo.learning_rate, is_taught = self.learning_rate, self.imitates
        figures = self.ppo.update()
        if is_taught:
            # PPO's bounds are not those of labels.
            return figures | {"learning_rate": self.cfg.learning_rate}
        self.learning_rate = self.ppo.learning_rate
        return figures

    def forget(self) -> None:
        """Drop the rollout and the past of all worlds, the teachers' too."""
        self.ppo.forget()
        for teacher in self.teachers:
            teacher.reset()

    def _label(self, step: int) -> None:
        """Write a step's labels into the rollout."""
        if step == 0:
            for teacher in self.teachers:
                teacher.begin_rollout(self.ppo.storage.num_envs)
        self._labelling[step]()
        for teacher in self.teachers:
            teacher.set_step(step + 1)

    @torch.no_grad()
    def _label_at(self, step: int) -> None:
        obs = self.ppo.storage.observations[step]
        labels = []
        for teacher in self.teachers:
            teacher.set_step(step)
            mean = teacher(obs)
            assert teacher.distribution is not None
            teacher.distribution.update(mean)
            labels.append(torch.stack((mean, teacher.output_std), dim=-1))
        label = labels[0]
        if len(labels) > 1:
            which = obs[TEACHER].long()[..., None, None]
            which = which.expand(-1, 1, *label.shape[1:])
            label = torch.stack(labels, dim=1).gather(1, which).squeeze(1)
        mean, std = label.unbind(dim=-1)
        obs[MEAN].copy_(mean)
        obs[STD].copy_(std)
        self._shown.copy_(torch.addcmul(mean, std, torch.randn_like(mean)))
