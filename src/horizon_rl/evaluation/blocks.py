"""A policy asked for blocks of worlds of one size, so that its actions repeat.

Sums in a matrix product may come out differently for another number of rows. In blocks
of one size a scenario gets the same action to the bit, however many run beside it and
however many threads share the blocks.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch
from tensordict import TensorDict

from horizon_rl.policies.load import check_actions
from horizon_rl.support.cores import default_threads
from horizon_rl.task import Policy


class Blocks:
    """A policy for n worlds, made once for each block of them: see `task.Policy`."""

    def __init__(
        self, make: Callable[[], Policy], num_worlds: int, block: int, num_threads: int
    ):
        """Make the policy for every block.

        Args:
            make: Returns the policy, with a memory of its own.
            num_worlds: How many there are; the last block may have blank ones.
            block: Worlds that a policy meets at once.
            num_threads: Blocks that act at the same time; 0: as `default_threads` says.
        """
        self._block, count = block, -(-num_worlds // block)
        self._parts = [Padded(make(), block) for _ in range(count)]
        workers = min(count, num_threads or default_threads())
        self._pool = ThreadPoolExecutor(workers) if workers > 1 else None

    def reset(self, mask: torch.Tensor) -> None:
        for part, own in zip(self._parts, mask.split(self._block), strict=True):
            part.reset(own)

    def act(self, observations: TensorDict) -> torch.Tensor:
        if len(self._parts) == 1:
            return self._parts[0].act(observations)
        own = observations.split(self._block)
        spread = self._pool.map if self._pool else map
        return torch.cat(list(spread(Padded.act, self._parts, own)))


class Padded:
    """A policy that always meets the same number of worlds; those to spare are blank."""

    def __init__(self, policy: Policy, num_worlds: int):
        self._policy, self._num_worlds = policy, num_worlds

    def reset(self, mask: torch.Tensor) -> None:
        # Blank worlds begin in every step, so that `mask.all()` keeps its meaning.
        self._policy.reset(~self._pad(~mask))

    def act(self, observations: TensorDict) -> torch.Tensor:
        n = len(observations)
        if n < self._num_worlds:
            observations = observations.apply(self._pad, batch_size=[self._num_worlds])
        actions = self._policy.act(observations)
        check_actions(actions, self._num_worlds)
        return actions[:n]

    def _pad(self, values: torch.Tensor) -> torch.Tensor:
        if len(values) == self._num_worlds:
            return values
        blank = values.new_zeros((self._num_worlds, *values.shape[1:]))
        blank[: len(values)] = values
        return blank
