"""Rollout storage that keeps the past of a rollout once, and its worlds whole."""

from collections.abc import Generator

import torch
from rsl_rl.modules import HiddenState
from rsl_rl.storage import RolloutStorage
from torch import Tensor

from horizon_rl.learning.history import History, rollout_past


class SequenceStorage(RolloutStorage):
    """Rollouts [T, n] that a transformer reads as whole sequences.

    Upstream saves the hidden state at every step and pads trajectories to one length.
    Here the raw inputs before the rollout are kept once, 100 MB at 4096 worlds instead
    of 2.4 GB, and a sequence knows where its episodes end: nothing is padded.
    """

    history: History | None = None
    """What the actor remembered when the rollout began; None without a memory."""

    def cut(self, mask: Tensor, gamma: float) -> None:
        """End the episodes of worlds `mask` [n] with the last step, as timeouts end.

        For worlds that were started anew from outside: no `done` says so, but what
        comes next is no longer the episode that was.
        """
        if self.step == 0:
            return
        last = self.step - 1
        cut = mask.unsqueeze(1) & ~self.dones[last].bool()
        self.rewards[last] += gamma * self.values[last] * cut
        self.dones[last] |= cut

    def recurrent_mini_batch_generator(
        self, num_mini_batches: int, num_epochs: int = 8
    ) -> Generator[RolloutStorage.Batch, None, None]:
        """Yield whole worlds [T, n / minibatches, ...] in random order."""
        size = self.num_envs // num_mini_batches
        order = torch.randperm(self.num_envs, device=self.device)
        for _ in range(num_epochs):
            for ids in order[: size * num_mini_batches].split(size):
                yield self._sequences(ids)

    def _sequences(self, ids: Tensor) -> RolloutStorage.Batch:
        assert self.history is not None and self.distribution_params is not None
        past = History(self.history.raw[ids], self.history.first[ids])
        return RolloutStorage.Batch(
            observations=self.observations[:, ids],
            actions=self.actions[:, ids],
            values=self.values[:, ids],
            advantages=self.advantages[:, ids],
            returns=self.returns[:, ids],
            old_actions_log_prob=self.actions_log_prob[:, ids],
            old_distribution_params=tuple(p[:, ids] for p in self.distribution_params),
            hidden_states=(rollout_past(past, self.dones[:, ids, 0].bool()), None),
        )

    def _save_hidden_states(
        self, hidden_states: tuple[HiddenState, HiddenState]
    ) -> None:
        if self.step == 0:
            past = hidden_states[0]
            self.history = None if past is None else History(*past)
