"""Rollout storage that keeps the past of a rollout once, and its worlds whole."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict
from torch import Tensor

from horizon_rl.learning.config import PpoCfg
from horizon_rl.learning.history import History


class Minibatch(NamedTuple):
    """A part of a rollout: whole worlds [T, n, ...] or single steps [n, ...]."""

    observations: TensorDict
    actions: Tensor
    values: Tensor
    advantages: Tensor
    returns: Tensor
    old_actions_log_prob: Tensor
    """Of the actions, when they were taken."""
    old_distribution_params: tuple[Tensor, ...]
    """Mean and standard deviation of the actions, when they were taken."""
    past: History | None
    """What came before whole worlds; None of single steps."""
    weights: Tensor | None = None
    """How much each step counts in a loss, see `SequenceStorage`; None: all the same."""


class SequenceStorage(RolloutStorage):
    """Rollouts [T, n] that a transformer reads as whole sequences.

    Upstream saves the hidden state at every step and pads trajectories to one length.
    Here the raw inputs before the rollout are kept once, 100 MB at 4096 worlds instead
    of 2.4 GB, and a sequence knows where its episodes end: nothing is padded.

    All tensors stay where they are from the first rollout on: acting writes into them
    and updates read from them in recorded steps.
    """

    history: History | None = None
    """What the actor remembered when the rollout began; None without a memory."""
    weights: Tensor | None = None
    """[T, n, 1] 0 for steps that nothing is learnt from, with a mean of 1 over all ranks'
    rollouts; None where all steps count, which is the rule."""

    def __init__(
        self,
        num_envs: int,
        observations: TensorDict,
        num_actions: int,
        cfg: PpoCfg,
        whole_worlds: bool,
        device: str,
    ):
        """Allocate the buffers; minibatches are whole worlds, or single steps."""
        super().__init__(
            "rl", num_envs, cfg.num_steps, observations, [num_actions], device
        )
        self.cfg, self.whole_worlds = cfg, whole_worlds
        steps = 1 if whole_worlds else cfg.num_steps
        self.minibatch_size = num_envs * steps // cfg.num_minibatches
        mean, std = torch.zeros_like(self.actions), torch.zeros_like(self.actions)
        self.distribution_params: tuple[Tensor, ...] = mean, std  # pyright: ignore[reportIncompatibleVariableOverride]
        self.last_observations: TensorDict = self.observations[0].clone()
        """[n] what followed the rollout's last step."""

    # Buffers made in inference mode could not be written outside of it.
    @torch.inference_mode(False)
    def begin(self, history: History | None) -> None:
        """Copy the past of a rollout that begins."""
        if history is None:
            return
        if self.history is None:
            self.history = History(*(tensor.clone() for tensor in history))
        for own, given in zip(self.history, history, strict=True):
            own.copy_(given)

    @torch.inference_mode(False)
    def weigh(self, weights: Tensor) -> None:
        """Set the weights [n] of the present step; from the first rollout on, or never."""
        if self.weights is None:
            self.weights = torch.zeros_like(self.rewards)
        self.weights[self.step, :, 0] = weights

    def minibatch_ids(self) -> Iterator[Tensor]:
        """Cut the rollout into minibatches, pass by pass: ids of worlds or of steps."""
        total = self.minibatch_size * self.cfg.num_minibatches
        # As upstream draws it: of the steps only as many as are used.
        drawn, order = self.num_envs if self.whole_worlds else total, None
        for _ in range(self.cfg.num_epochs):
            if order is None or self.cfg.reshuffle:
                order = torch.randperm(drawn, device=self.device)
            yield from order[:total].split(self.minibatch_size)

    def minibatch(self, ids: Tensor) -> Minibatch:
        """Return worlds `ids`, or single steps, step t of world i being t n + i."""
        past = None
        if self.whole_worlds:
            assert self.history is not None
            history = History(*(tensor[ids] for tensor in self.history))
            past = history.with_rollout(self.dones[:, ids, 0].bool())

        def pick(values: Any) -> Any:
            return values[:, ids] if self.whole_worlds else values.flatten(0, 1)[ids]

        return Minibatch(
            observations=pick(self.observations),
            actions=pick(self.actions),
            values=pick(self.values),
            advantages=pick(self.advantages),
            returns=pick(self.returns),
            old_actions_log_prob=pick(self.actions_log_prob),
            old_distribution_params=tuple(map(pick, self.distribution_params)),
            past=past,
            weights=None if self.weights is None else pick(self.weights),
        )
