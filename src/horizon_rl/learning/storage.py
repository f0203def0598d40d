"""Rollout storage that keeps the past of a rollout once, and its worlds whole."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict
from torch import Tensor

from horizon_rl.learning.config import PpoCfg
from horizon_rl.learning.history import History, RolloutPast, rollout_past


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
    past: RolloutPast | None
    """What came before whole worlds; None of single steps."""


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

    def __init__(self, *args: Any, **options: Any):
        """Allocate the buffers, with rsl_rl's arguments."""
        super().__init__(*args, **options)
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

    def cut(self, mask: Tensor, gamma: float) -> None:
        """End the episodes of worlds `mask` [n] with the last step, as timeouts end.

        For worlds that were reset from outside: no `done` says so, but what comes next
        is another episode.
        """
        if self.step == 0:
            return
        last = self.step - 1
        cut = mask.unsqueeze(1) & ~self.dones[last].bool()
        self.rewards[last] += gamma * self.values[last] * cut
        self.dones[last] |= cut

    def minibatch_size(self, num_mini_batches: int, whole_worlds: bool) -> int:
        """Return how many worlds, or single steps, a minibatch has."""
        steps = 1 if whole_worlds else self.num_transitions_per_env
        return self.num_envs * steps // num_mini_batches

    def minibatch_ids(self, cfg: PpoCfg, whole_worlds: bool) -> Iterator[Tensor]:
        """Cut the rollout into minibatches, pass by pass: ids of worlds or of steps."""
        size = self.minibatch_size(cfg.num_minibatches, whole_worlds)
        total = size * cfg.num_minibatches
        # As upstream draws it: of the steps only as many as are used.
        drawn, order = self.num_envs if whole_worlds else total, None
        for _ in range(cfg.num_epochs):
            if order is None or cfg.reshuffle:
                order = torch.randperm(drawn, device=self.device)
            yield from order[:total].split(size)

    def minibatch(self, ids: Tensor, whole_worlds: bool) -> Minibatch:
        """Return worlds `ids`, or single steps, step t of world i being t n + i."""
        past = None
        if whole_worlds:
            assert self.history is not None
            history = History(*(tensor[ids] for tensor in self.history))
            past = rollout_past(history, self.dones[:, ids, 0].bool())

        def pick(values: Any) -> Any:
            return values[:, ids] if whole_worlds else values.flatten(0, 1)[ids]

        return Minibatch(
            observations=pick(self.observations),
            actions=pick(self.actions),
            values=pick(self.values),
            advantages=pick(self.advantages),
            returns=pick(self.returns),
            old_actions_log_prob=pick(self.actions_log_prob),
            old_distribution_params=tuple(map(pick, self.distribution_params)),
            past=past,
        )
