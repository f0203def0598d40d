"""Evaluate a policy: every scenario of a suite once, results kept as they come."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from tensordict import TensorDict

from horizon_rl.evaluation.array_cache import ArrayCache, make_key
from horizon_rl.evaluation.suite import FrozenColumn, Suite
from horizon_rl.physics import choose_device, make_backend
from horizon_rl.policies.load import EvaluatedPolicy, check_actions
from horizon_rl.support.errors import require
from horizon_rl.task import EpisodeTable, Policy, VelocityEnv, rollout, succeeded
from horizon_rl.task.episodes import concatenate

CHUNK = 256
"""Scenarios that run side by side, and worlds that a policy always meets at once: sums
in a matrix product come out differently for another number of rows."""
GPU_CHUNK = 1024
"""The same on a GPU, which wants more worlds."""

FIELDS = tuple(field.name for field in fields(EpisodeTable))

Progress = Callable[[str, int, int], None]
"""Called with (column, env steps done, env steps at most) over the whole suite."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The episodes of a policy in a suite."""

    policy: EvaluatedPolicy
    suite: Suite
    columns: dict[str, EpisodeTable]
    """Episodes in the order of scenarios, by column."""

    def won(self, column: str) -> np.ndarray:
        """Tell which episodes of a column are a success, [scenarios]."""
        suite = self.suite
        return succeeded(self.columns[column], suite.task.max_steps, suite.success)


class Evaluator:
    """Runs suites, and keeps what it has run on disk."""

    def __init__(self, cache: ArrayCache, device: str = "cpu", num_threads: int = 0):
        """Prepare to evaluate.

        Args:
            cache: Where episodes are kept.
            device: cpu, cuda, cuda:1, or auto. The CPU repeats results to the bit.
            num_threads: Threads of the engine on the CPU; 0 is one per core.
        """
        self.cache, self._num_threads = cache, num_threads
        self.device = choose_device(device)
        self._chunk = CHUNK if self.device.type == "cpu" else GPU_CHUNK
        self._env: tuple[object, VelocityEnv] | None = None

    def evaluate(
        self,
        policy: EvaluatedPolicy,
        suite: Suite,
        num_episodes: int | None = None,
        progress: Progress | None = None,
    ) -> Evaluation:
        """Run the first scenarios of every column; all of them without a number."""
        n = suite.num_episodes if num_episodes is None else num_episodes
        require("episodes", n, 1, suite.num_episodes, whole=True)
        # Columns that differ only in their name run once.
        todo: dict[str, str] = {}
        for name, column in suite.frozen.items():
            todo.setdefault(column.digest, name)
        tables, longest = {}, n * suite.task.max_steps
        for number, (digest, name) in enumerate(todo.items()):

            def tell(
                steps: int, name: str = name, done: int = number * longest
            ) -> None:
                if progress:
                    progress(name, done + steps, len(todo) * longest)

            tables[digest] = self._run_column(policy, suite.frozen[name], n, tell)
            tell(longest)
        columns = {name: tables[c.digest] for name, c in suite.frozen.items()}
        return Evaluation(policy, suite, columns)

    def kept(
        self, policy: EvaluatedPolicy, column: FrozenColumn
    ) -> EpisodeTable | None:
        """Return the episodes of a column that are on disk; nothing is run."""
        if policy.digest is None:
            return None
        found = self.cache.read(self._key(policy, column), FIELDS)
        return EpisodeTable(**found) if found else None

    def _key(self, policy: EvaluatedPolicy, column: FrozenColumn) -> str:
        return make_key(
            policy=policy.digest,
            column=column.digest,
            device=self.device.type,
            chunk=self._chunk,
        )

    def _run_column(
        self,
        policy: EvaluatedPolicy,
        column: FrozenColumn,
        n: int,
        tell: Callable[[int], None],
    ) -> EpisodeTable:
        kept, chunk = self.kept(policy, column), self._chunk
        if kept is not None and len(kept) >= n:
            return kept.rows(slice(n))
        # What ends with a part of a chunk runs that chunk again.
        start = len(kept) // chunk * chunk if kept is not None else 0
        parts = [kept.rows(slice(start))] if kept is not None else []
        scenarios = column.scenarios(n)
        env = self._make_env(policy, column, min(n, chunk))
        for first in range(start, n, chunk):
            rows = range(first, min(first + chunk, n))

            def count(step: int, _: int, rows: range = rows) -> None:
                tell(rows.start * env.max_episode_length + step * len(rows))

            padded = Padded(policy.make(self.device), chunk)
            seed = column.noise_seed
            parts.append(rollout(env, padded, scenarios, seed, count, rows))
            if policy.digest is not None:
                self.cache.write(self._key(policy, column), vars(concatenate(parts)))
        return concatenate(parts)

    def _make_env(
        self, policy: EvaluatedPolicy, column: FrozenColumn, num_envs: int
    ) -> VelocityEnv:
        """Build worlds for a column, or take the last column's where they fit."""
        task = column.task
        if policy.action_scale is not None:
            task = replace(task, action_scale=policy.action_scale)
        wanted = (column.robot, task, num_envs)
        if self._env is None or self._env[0] != wanted:
            # First let go of the old worlds: two at once may not fit a GPU.
            self._env = None
            backend = make_backend(
                column.robot, num_envs, str(self.device), self._num_threads
            )
            self._env = wanted, VelocityEnv(backend, task)
        return self._env[1]


class Padded:
    """A policy that always meets the same number of worlds; those to spare are blank.

    So a scenario gets the same action to the bit, however many run beside it.
    """

    def __init__(self, policy: Policy, num_worlds: int):
        self._policy, self._num_worlds = policy, num_worlds

    def reset(self, mask: torch.Tensor) -> None:
        # Blank worlds begin in every step, so that `mask.all()` keeps its meaning.
        self._policy.reset(~self._pad(~mask))

    def act(self, observations: TensorDict) -> torch.Tensor:
        n = len(observations)
        padded = observations.apply(self._pad, batch_size=[self._num_worlds])
        actions = self._policy.act(padded)
        check_actions(actions, self._num_worlds)
        return actions[:n]

    def _pad(self, values: torch.Tensor) -> torch.Tensor:
        if len(values) == self._num_worlds:
            return values
        blank = values.new_zeros((self._num_worlds, *values.shape[1:]))
        blank[: len(values)] = values
        return blank
