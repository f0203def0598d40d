"""Evaluate a policy: every scenario of a suite once, results kept as they come."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from time import perf_counter

import numpy as np

from horizon_rl.evaluation.array_cache import ArrayCache, make_key
from horizon_rl.evaluation.lanes import Lanes
from horizon_rl.evaluation.suite import FrozenColumn, Suite
from horizon_rl.physics import choose_device
from horizon_rl.policies.load import EvaluatedPolicy
from horizon_rl.support.errors import require
from horizon_rl.task import EpisodeTable, join_scenarios, succeeded
from horizon_rl.task.episodes import concatenate
from horizon_rl.task.rollouts import complete

CHUNK = 512
"""Scenarios that run side by side."""
GPU_CHUNK = 4096
"""The same on a GPU, which wants more worlds: there columns run together."""
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


def side_by_side(columns: Sequence[FrozenColumn]) -> list[list[FrozenColumn]]:
    """Return columns by the worlds that they need: those of one batch can share them."""
    batches: dict[object, list[FrozenColumn]] = {}
    for column in columns:
        parameters = tuple(column.catalogue.parameters)
        worlds = column.robot, column.task, column.noise_seed, parameters
        batches.setdefault(worlds, []).append(column)
    return list(batches.values())


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
        names = suite.distinct
        tables: dict[str, EpisodeTable] = {}
        longest = n * suite.task.max_steps
        for batch in self._batches([suite.frozen[name] for name in names.values()]):

            def tell(
                steps: int,
                name: str = names[batch[0].digest],
                done: int = len(tables) * longest,
            ) -> None:
                if progress:
                    progress(name, done + steps, len(names) * longest)

            tables |= self._run_batch(policy, batch, n, tell)
            tell(len(batch) * longest)
        columns = {name: tables[c.digest] for name, c in suite.frozen.items()}
        return Evaluation(policy, suite, columns)

    def estimate(
        self, policy: EvaluatedPolicy, suite: Suite, num_episodes: int | None = None
    ) -> float:
        """Time a few steps; return about how many seconds `evaluate` takes at most."""
        n = suite.num_episodes if num_episodes is None else num_episodes
        chunk = self._chunk(policy)
        todo: list[tuple[FrozenColumn, int]] = []
        for batch in self._batches([suite.frozen[x] for x in suite.distinct.values()]):
            _, missing, start = self._find_kept(policy, batch, n)
            if missing:
                todo.append((batch[0], len(missing) * n - start))
        if not todo:
            return 0.0
        column, worlds = todo[0][0], min(chunk, max(rows for _, rows in todo))
        lanes, rows = self._lanes(policy, column, worlds), range(min(n, worlds))
        make = partial(policy.make, self.device)
        lanes.begin(make, column.scenarios(len(rows)), 0, rows)
        lanes.advance(WARM_UP)
        began = perf_counter()
        lanes.advance(SAMPLE)
        # What waits for a GPU is in it, too.
        _ = lanes.is_over
        cost = (perf_counter() - began) / SAMPLE
        return cost * lanes.longest * sum(-(-rows // chunk) for _, rows in todo)

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

    def _batches(self, columns: Sequence[FrozenColumn]) -> list[list[FrozenColumn]]:
        """Return columns by what runs side by side: on the CPU every one by itself."""
        if self.device.type == "cpu":
            return [[column] for column in columns]
        return side_by_side(columns)

    def _find_kept(
        self, policy: EvaluatedPolicy, batch: Sequence[FrozenColumn], n: int
    ) -> tuple[dict[str, EpisodeTable], list[FrozenColumn], int]:
        """Return what is on disk, what is missing, and where to start: with a block."""
        found = {column.digest: self.kept(policy, column) for column in batch}
        kept = {digest: table for digest, table in found.items() if table is not None}
        missing = [c for c in batch if c.digest not in kept or len(kept[c.digest]) < n]
        part = kept.get(missing[0].digest) if len(missing) == 1 else None
        block = self._block(policy)
        return kept, missing, len(part) // block * block if part is not None else 0

    def _run_batch(
        self,
        policy: EvaluatedPolicy,
        batch: Sequence[FrozenColumn],
        n: int,
        tell: Callable[[int], None],
    ) -> dict[str, EpisodeTable]:
        """Run columns side by side but for what is on disk; return them by digest."""
        kept, missing, start = self._find_kept(policy, batch, n)
        if not missing:
            return {digest: table.rows(slice(n)) for digest, table in kept.items()}
        tables = [kept[missing[0].digest].rows(slice(start))] if start else []
        scenarios = join_scenarios([column.scenarios(n) for column in missing])
        end, chunk = len(missing) * n, self._chunk(policy)
        for first in range(start, end, chunk):
            lanes = self._lanes(policy, missing[0], min(end - start, chunk))
            rows = range(first, min(first + chunk, end))

            def count(step: int, rows: range = rows) -> None:
                tell(rows.start * missing[0].task.max_steps + step * len(rows))

            seed, make = missing[0].noise_seed, partial(policy.make, self.device)
            lanes.begin(make, scenarios, seed, rows)
            tables.append(complete(lanes, lanes.longest, count))
            whole = concatenate(tables)
            for i in range(first // n, -(-rows.stop // n)):
                column, own = missing[i], whole.rows(slice(i * n, (i + 1) * n))
                if len(own) <= len(kept.get(column.digest, ())):
                    continue  # An earlier evaluation got as far.
                kept[column.digest] = own = replace(own, row=own.row - i * n)
                if policy.digest is not None:
                    self.cache.write(self._key(policy, column), vars(own))
        return {digest: table.rows(slice(n)) for digest, table in kept.items()}

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
            robot, device, threads = column.robot, self.device, self._num_threads
            self._worlds = wanted, Lanes(robot, task, device, num_envs, block, threads)
        return self._worlds[1]
