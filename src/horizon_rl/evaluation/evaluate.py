"""Evaluate a policy: every scenario of a suite once, results kept as they come."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from time import perf_counter

import numpy as np

from horizon_rl.evaluation.array_cache import ArrayCache, make_key
from horizon_rl.evaluation.lanes import Lanes
from horizon_rl.evaluation.suite import FrozenColumn, Suite
from horizon_rl.physics import choose_device, make_backend
from horizon_rl.policies.load import EvaluatedPolicy
from horizon_rl.support.errors import require
from horizon_rl.task import EpisodeTable, Policy, VelocityEnv, succeeded
from horizon_rl.task.episodes import concatenate
from horizon_rl.task.rollouts import complete

CHUNK = 512
"""Scenarios that run side by side."""
GPU_CHUNK = 1024
"""The same on a GPU, which wants more worlds."""
BLOCK, SHARED_BLOCK = 64, 256
"""Worlds that a policy always meets at once on the CPU; and one that is shared, of which
there is one such block at a time: it may remember, and has one memory."""
WARM_UP, SAMPLE = 2, 8
"""Control steps that are timed to say how long an evaluation will take, and before."""

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


def block_of(policy: EvaluatedPolicy) -> int:
    """Return how many worlds a policy is always asked for at once on the CPU."""
    return SHARED_BLOCK if policy.is_shared else BLOCK


class Evaluator:
    """Runs suites, and keeps what it has run on disk."""

    def __init__(self, cache: ArrayCache, device: str = "cpu", num_threads: int = 0):
        """Prepare to evaluate.

        Args:
            cache: Where episodes are kept.
            device: cpu, cuda, cuda:1, or auto. The CPU repeats results to the bit.
            num_threads: Threads of the engine on the CPU; 0: as OMP_NUM_THREADS says,
                else one per core.
        """
        self.cache, self._num_threads = cache, num_threads
        self.device = choose_device(device)
        self._worlds: tuple[object, Lanes] | None = None

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
        todo = suite.distinct
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

    def estimate(
        self, policy: EvaluatedPolicy, suite: Suite, num_episodes: int | None = None
    ) -> float:
        """Time a few steps; return about how many seconds `evaluate` takes at most."""
        n = suite.num_episodes if num_episodes is None else num_episodes
        todo: list[tuple[FrozenColumn, int]] = []
        for name in suite.distinct.values():
            kept = self.kept(policy, suite.frozen[name])
            if kept is None or len(kept) < n:
                rows = n - self._start(policy, kept)
                todo.append((suite.frozen[name], -(-rows // self._chunk(policy))))
        if not todo:
            return 0.0
        column, rows = todo[0][0], range(min(n, self._chunk(policy)))
        lanes = self._lanes(policy, column, len(rows))
        lanes.begin(self._make(policy), column.scenarios(len(rows)), 0, rows)
        lanes.advance(WARM_UP)
        began = perf_counter()
        lanes.advance(SAMPLE)
        # What waits for a GPU is in it, too.
        _ = lanes.is_over
        cost = (perf_counter() - began) / SAMPLE
        return cost * lanes.longest * sum(passes for _, passes in todo)

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
            block=self._block(policy),
        )

    def _block(self, policy: EvaluatedPolicy) -> int:
        return block_of(policy) if self.device.type == "cpu" else GPU_CHUNK

    def _chunk(self, policy: EvaluatedPolicy) -> int:
        """Return how many scenarios run side by side."""
        if self.device.type != "cpu":
            return GPU_CHUNK
        return SHARED_BLOCK if policy.is_shared else CHUNK

    def _make(self, policy: EvaluatedPolicy) -> Callable[[], Policy]:
        return partial(policy.make, self.device)

    def _start(self, policy: EvaluatedPolicy, kept: EpisodeTable | None) -> int:
        """Return which scenario to run first: a block is run as a whole."""
        block = self._block(policy)
        return len(kept) // block * block if kept is not None else 0

    def _run_column(
        self,
        policy: EvaluatedPolicy,
        column: FrozenColumn,
        n: int,
        tell: Callable[[int], None],
    ) -> EpisodeTable:
        kept, chunk = self.kept(policy, column), self._chunk(policy)
        if kept is not None and len(kept) >= n:
            return kept.rows(slice(n))
        start = self._start(policy, kept)
        parts = [kept.rows(slice(start))] if kept is not None else []
        scenarios = column.scenarios(n)
        lanes = self._lanes(policy, column, min(n, chunk))
        for first in range(start, n, chunk):
            rows = range(first, min(first + chunk, n))

            def count(step: int, rows: range = rows) -> None:
                tell(rows.start * lanes.longest + step * len(rows))

            lanes.begin(self._make(policy), scenarios, column.noise_seed, rows)
            parts.append(complete(lanes, lanes.longest, count))
            if policy.digest is not None:
                self.cache.write(self._key(policy, column), vars(concatenate(parts)))
        return concatenate(parts)

    def _lanes(
        self, policy: EvaluatedPolicy, column: FrozenColumn, num_envs: int
    ) -> Lanes:
        """Build worlds for a column, or take the last column's where they fit."""
        policy.check_parameters(column.catalogue)
        task = column.task
        if policy.action_scale is not None:
            task = replace(task, action_scale=policy.action_scale)
        # A GPU repeats nothing to the bit, so it need not meet blank worlds.
        block = self._block(policy) if self.device.type == "cpu" else num_envs
        wanted = (column.robot, task, num_envs, block)
        if self._worlds is None or self._worlds[0] != wanted:
            # First let go of the old worlds: two at once may not fit a GPU.
            self._worlds = None

            def make_env(num_worlds: int, num_threads: int) -> VelocityEnv:
                device = str(self.device)
                backend = make_backend(column.robot, num_worlds, device, num_threads)
                return VelocityEnv(backend, task)

            lanes = Lanes(make_env, num_envs, block, self._num_threads)
            self._worlds = wanted, lanes
        return self._worlds[1]
