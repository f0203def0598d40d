"""GRAM (Queeney et al. 2025): adapt in distribution, be robust out of it.

One actor has two modes, which differ in the latent that it is told. Adaptive: the context
says what the instance is like. Robust: the latent is 0, and an adversary pushes. Half of
the worlds are in either mode, and swap with every iteration. A run has three parts, by the
share of its env steps that is spent:

1. PPO trains actor, critic and context in both modes; the adversary learns to push.
2. The actor is done. A history encoder learns to guess the context's latent from recent
   observations, and its epinet, what it has not seen; guesses drive the adaptive mode.
3. Nothing learns. How much guesses spread in distribution is measured on whole episodes.

A deployed policy trusts a guess as far as it spreads no more than that: see `adaptation`.
docs/assumptions.md says where this differs from what the authors do.
"""

from functools import partial
from typing import Literal

import torch
from tensordict import TensorDict
from torch import Tensor

from horizon_rl.learning.config import GramCfg
from horizon_rl.learning.gram_networks import (
    LATENT,
    Window,
    adaptation,
)
from horizon_rl.learning.gram_steps import (
    HISTORY,
    PUSH,
    ROBUST,
    AdversarySteps,
    ContextSteps,
    HistorySteps,
    latents,
    normalise_by_mode,
)
from horizon_rl.learning.ppo import Ppo, mean_figures, update_normalizer
from horizon_rl.support.graphs import Recorded

Part = Literal["context", "history", "calibration"]
QUANTILES = (0.90, 0.99)
"""Of the spreads in distribution: where trust begins to fall, and where it is gone."""


class WholeEpisodes:
    """Spreads of one whole episode of every world, which begin one after the other."""

    def __init__(self, num_worlds: int, device: torch.device):
        self._begun = torch.zeros(num_worlds, dtype=torch.long, device=device)
        """[n] ends of episodes so far: 1 while the world's whole episode runs."""
        self._spreads: list[Tensor] = []

    def restart(self) -> None:
        """Drop all; every world waits for its next episode."""
        self._begun.zero_()
        self._spreads.clear()

    def add(self, spread: Tensor, dones: Tensor) -> None:
        """Take a step's spreads [n], and which episodes end with the step [n]."""
        self._spreads.append(spread.masked_fill(self._begun != 1, torch.nan))
        self._begun += dones.bool()

    def take_quantiles(self) -> Tensor | None:
        """Return `QUANTILES` once all worlds are through, and restart; None before."""
        if not self._spreads or not bool((self._begun > 1).all()):
            return None
        found = torch.stack(self._spreads)
        found = found[~found.isnan()].sort().values
        self.restart()
        # Not `torch.quantile`, which takes 16 M numbers at most.
        return torch.stack([found[int(q * (len(found) - 1))] for q in QUANTILES])


class Gram:
    """Learns to adapt and to be robust: see `Algorithm`, `Adversarial`."""

    def __init__(
        self,
        ppo: Ppo,
        context: ContextSteps,
        adversary: AdversarySteps,
        history: HistorySteps,
        cfg: GramCfg,
    ):
        """Train by these steps, which share the rollouts of `ppo`.

        Args:
            ppo: Collects; its rollouts have the groups `LATENT`, `ROBUST`, `PUSH` and
                `HISTORY`.
            context: The steps of `ppo`.
            adversary: Steps of the network that pushes.
            history: Steps of the actor's history encoder.
            cfg: When what happens.
        """
        self.ppo, self.cfg, self.num_steps = ppo, cfg, ppo.num_steps
        self.actor, self.adversary = ppo.actor, adversary.adversary
        self.learning_rate = ppo.learning_rate
        """PPO's; the adversary's is among the tensors, the history's is fixed."""
        self.models = {**ppo.models, "adversary": self.adversary}
        self._context, self._adversary, self._history = context, adversary, history
        n, device = ppo.storage.num_envs, context.device
        self._ids = torch.arange(n, device=device).unsqueeze(1)
        self._robust = torch.zeros(n, 1, device=device)
        self._push_limit = torch.zeros((), device=device)
        self._push = torch.zeros(n, 2, device=device)
        self._encoder = history.actor.history
        self._window = Window(n, cfg.history, self.actor.obs_dim, device)
        self._spread = torch.zeros(n, device=device)
        self._episodes = WholeEpisodes(n, device)
        self._iteration = 0
        self.part: Part = "context"
        """What the run is at."""
        # Recorded for each step apart: its slots lie elsewhere in every one.
        self._telling, self._guessing = (
            [Recorded(partial(work, t), device) for t in range(self.num_steps)]
            for work in (self._tell_at, self._guess_at)
        )

    @property
    def pushes(self) -> Tensor | None:
        """[n, 2] what the adversary adds to the trunks' velocities now, m/s."""
        return self._push if self.part == "context" else None

    def optimizer_tensors(self) -> dict[str, Tensor]:
        found = self.ppo.optimizer_tensors()
        for steps in (self._adversary, self._history):
            found |= steps.optimizer.named_tensors()
        return found

    def schedule(self, progress: float) -> None:
        cfg, part = self.cfg, self.part
        trained = min(1.0, progress / cfg.history_from)
        self.part = "context" if progress < cfg.history_from else "history"
        if progress >= cfg.calibrate_from:
            self.part = "calibration"
        if self.part != part:
            # What was seen by another policy says nothing of this one.
            self._window.forget()
            self._episodes.restart()
        if self.part == "context":
            # Of a run that begins or goes on from a policy whose encoder knew more.
            self._encoder.quantiles.zero_()
        self._push_limit.fill_(cfg.push_speed * trained)
        self.ppo.schedule(trained)

    def act(self, obs: TensorDict) -> Tensor:
        """Return actions [n, -]: samples or, to calibrate, means; not to be changed."""
        storage, step = self.ppo.storage, self.ppo.storage.step
        if step == 0:
            first_half = self._ids < storage.num_envs // 2
            self._robust.copy_(first_half == bool(self._iteration % 2))
        seen = storage.observations[step]
        for name, values in obs.items():
            seen[name].copy_(values)
        (self._telling if self.part == "context" else self._guessing)[step]()
        actions = self.ppo.act(seen)
        means = storage.distribution_params[0][step]
        return means if self.part == "calibration" else actions

    def process_env_step(
        self, obs: TensorDict, rewards: Tensor, dones: Tensor, extras: dict[str, Tensor]
    ) -> None:
        self.ppo.process_env_step(obs, rewards, dones, extras)
        if self.part != "context":
            self._window.reset(dones)
            self._episodes.add(self._spread, dones)

    @torch.no_grad()
    def compute_returns(self, obs: TensorDict) -> None:
        storage = self.ppo.storage
        robust = storage.observations[ROBUST]
        last = storage.observations[-1].select(LATENT, ROBUST, PUSH, HISTORY)
        last = obs.copy().update(last.clone())
        last[LATENT].copy_(latents(last, self._context.context))
        self.ppo.compute_returns(last)
        # PPO has scaled and shifted all of them alike, which this undoes.
        by_mode = normalise_by_mode(storage.advantages, robust, storage.weights)
        storage.advantages.copy_(by_mode)

    def update(self) -> dict[str, float]:
        pushes_better = self._iteration % self.cfg.adversary_every == 0
        self._iteration += 1
        self.adversary.iteration.fill_(self._iteration)
        if self.part != "context":
            return self._adapt()
        pushed = self._learn_to_push() if pushes_better else {}
        obs = self.ppo.storage.observations.flatten(0, 1)
        self.ppo.learning_rate = self.learning_rate
        figures = self.ppo.update()
        self.learning_rate = self.ppo.learning_rate
        update_normalizer(self.adversary, obs)
        return figures | pushed

    def forget(self) -> None:
        """Drop the rollout and the past of all worlds; what was learned stays."""
        self.ppo.forget()
        self._window.forget()
        self._episodes.restart()
        self._iteration = int(self.adversary.iteration)

    def _learn_to_push(self) -> dict[str, float]:
        rows = self.ppo.take_steps(self._adversary, float(self.adversary.rate))
        self.adversary.rate.copy_(self._adversary.optimizer.rate)
        figures = mean_figures(rows)
        figures["adversary_kl"] = figures.pop("kl")
        return figures

    def _adapt(self) -> dict[str, float]:
        """Learn from a rollout with guesses, and calibrate if all worlds are through."""
        figures: dict[str, float] = {}
        if self.part == "history":
            rows = self.ppo.take_steps(self._history, self.cfg.history_rate)
            figures = mean_figures(rows)
        self.ppo.storage.clear()
        quantiles = self._encoder.quantiles
        found = self._episodes.take_quantiles()
        if found is not None:
            quantiles.copy_(found)
        figures["spread"] = self._spread.mean().item()
        figures["alpha"] = adaptation(self._spread, quantiles).mean().item()
        return figures

    @torch.no_grad()
    def _tell_at(self, step: int) -> None:
        """Write the modes' latents of a step, and draw the adversary's pushes."""
        obs = self.ppo.storage.observations[step]
        obs[ROBUST].copy_(self._robust)
        obs[LATENT].copy_(latents(obs, self._context.context))
        angle = self.adversary(obs, stochastic_output=True)
        chosen = torch.rand_like(angle) < self.cfg.push_rate
        pushed = chosen * self._robust
        before = self.adversary.output_distribution_params
        obs[PUSH].copy_(torch.cat((pushed, angle, *before), dim=1))
        size = pushed * self._push_limit * torch.rand_like(angle)
        self._push.copy_(size * torch.cat((angle.cos(), angle.sin()), dim=1))

    @torch.no_grad()
    def _guess_at(self, step: int) -> None:
        """Write a step's histories, and the latents that are guessed from them."""
        obs = self.ppo.storage.observations[step]
        obs[ROBUST].copy_(self._robust)
        obs[HISTORY].copy_(self._window.add(self._history.actor.normalise(obs)))
        latent, spread = self._encoder.guess(obs[HISTORY])
        obs[LATENT].copy_((1.0 - self._robust) * latent)
        self._spread.copy_(spread)
