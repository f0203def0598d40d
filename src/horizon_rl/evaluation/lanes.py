"""Worlds that are evaluated in lanes: acting, physics and judging on cores of their own.

In a single environment the engine uses all cores, but what the task and the policy do
between its steps keeps most of them waiting. Lanes have no such moments.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

from horizon_rl.evaluation.blocks import Blocks
from horizon_rl.physics import cores_for_physics
from horizon_rl.support.cores import default_threads
from horizon_rl.task import EpisodeTable, Policy, Scenarios, VelocityEnv
from horizon_rl.task.episodes import concatenate
from horizon_rl.task.rollouts import Pass


class Lanes:
    """Worlds for n scenarios, side by side: see `task.rollouts.Steppable`.

    Each lane is an environment with blocks of the policy.
    """

    def __init__(
        self,
        make_env: Callable[[int, int], VelocityEnv],
        num_worlds: int,
        block: int,
        num_threads: int,
    ):
        """Make the worlds.

        Args:
            make_env: Given worlds and threads of the engine, returns an environment.
            num_worlds: How many in all.
            block: Worlds that a policy meets at once; a lane has whole blocks.
            num_threads: For all lanes together; 0: as `default_threads` says.
        """
        threads, num_blocks = num_threads or default_threads(), -(-num_worlds // block)
        count = count_lanes(num_blocks, threads)
        self._threads = -(-threads // count)
        self._block, size = block, num_blocks // count * block
        self._firsts = range(0, num_worlds, size)
        self._envs = [
            make_env(min(size, num_worlds - first), self._threads)
            for first in self._firsts
        ]
        self._pool = ThreadPoolExecutor(count)
        self._passes: list[Pass] = []

    @property
    def longest(self) -> int:
        """Control steps of the longest episode."""
        return self._envs[0].max_episode_length

    def begin(
        self, make: Callable[[], Policy], scenarios: Scenarios, seed: int, rows: range
    ) -> None:
        """Begin the scenarios in `rows`, of which there are no more than worlds.

        Args:
            make: Returns the policy, with a memory of its own.
            scenarios: What to run.
            seed: Seed of the sensor noise.
            rows: The first is the first of a block.
        """
        self._passes = []
        for first, env in zip(self._firsts, self._envs, strict=True):
            if own := rows[first : first + env.num_envs]:
                acting = Blocks(make, env.num_envs, self._block, self._threads)
                self._passes.append(Pass(env, acting, scenarios, seed, own))

    def step(self) -> None:
        """Let the policy act and the worlds go on by a control step, in all lanes."""
        with cores_for_physics(self._envs[0].backend):
            steps = [self._pool.submit(one.step) for one in self._passes]
            wait(steps)
        for step in steps:
            step.result()

    @property
    def is_over(self) -> bool:
        return all(one.is_over for one in self._passes)

    def episodes(self) -> EpisodeTable:
        """Return what happened, in the order of rows."""
        return concatenate([one.episodes() for one in self._passes])


def count_lanes(num_blocks: int, num_threads: int) -> int:
    """Return how many lanes share the blocks evenly; one waits for the other else."""
    most = min(num_blocks, num_threads)
    return max(n for n in range(1, most + 1) if num_blocks % n == 0)
