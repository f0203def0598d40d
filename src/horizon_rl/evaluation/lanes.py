"""Worlds that are evaluated in two lanes, each with half of the cores.

The engine uses all cores, but what task and policy do between its steps leaves cores
idle. With two lanes one steps while the other acts: docs/evaluation.md has what it saves.

On two cores the lanes take turns at it. Torch lets go of the interpreter's lock in every
operation, so two threads of small operations would hand it to and fro all the time.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from threading import Event, Semaphore

import torch

from horizon_rl.evaluation.blocks import Blocks
from horizon_rl.physics import cores_for_physics, make_backend
from horizon_rl.robots import Robot
from horizon_rl.support.cores import default_threads
from horizon_rl.task import EpisodeTable, Policy, Scenarios, TaskCfg, VelocityEnv
from horizon_rl.task.episodes import concatenate
from horizon_rl.task.rollouts import Pass


class Lanes:
    """Worlds for n scenarios, side by side: see `task.rollouts.Moving`.

    Each lane is an environment with blocks of the policy.
    """

    def __init__(
        self,
        robot: Robot,
        task: TaskCfg,
        device: torch.device,
        num_worlds: int,
        block: int,
        num_threads: int,
    ):
        """Make the worlds.

        Args:
            robot: The robot in every world.
            task: What is asked of it.
            device: Where they are simulated.
            num_worlds: How many in all.
            block: Worlds that a policy meets at once; a lane has whole blocks.
            num_threads: For all lanes together; 0: as `default_threads` says.
        """
        threads, num_blocks = num_threads or default_threads(), -(-num_worlds // block)
        # Lanes of different sizes would wait for each other.
        count = 2 if num_blocks % 2 == 0 and threads > 1 else 1
        self._threads = -(-threads // count)
        self._block, size = block, num_blocks // count * block
        self._firsts = range(0, num_worlds, size)
        sizes = [min(size, num_worlds - first) for first in self._firsts]
        backends = [make_backend(robot, n, str(device), self._threads) for n in sizes]
        # As many act at a time as each has threads: both, but on two cores one.
        self._turn = Semaphore(self._threads)
        """Held by a lane but for while its engine steps."""
        pause = partial(_released, self._turn)
        self._envs = [VelocityEnv(b, task, around_physics=pause) for b in backends]
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

    def advance(self, num_steps: int) -> None:
        """Let the policy act and the worlds go on, for so many control steps."""
        with cores_for_physics(self._envs[0].backend):
            if len(self._passes) == 1:
                # In this thread, which may have a stream of a GPU of its own.
                with self._turn:
                    self._passes[0].advance(num_steps)
            else:
                self._advance_together(num_steps)

    def _advance_together(self, num_steps: int) -> None:
        stop, infers = Event(), torch.is_inference_mode_enabled()

        def go(one: Pass) -> None:
            # Every thread has its own mode.
            with torch.inference_mode(infers), self._turn:
                for _ in range(num_steps):
                    if stop.is_set():
                        return
                    one.advance(1)

        lanes = [self._pool.submit(go, one) for one in self._passes]
        try:
            wait(lanes, return_when=FIRST_EXCEPTION)
        finally:
            # After Ctrl-C, or a failure of one, no lane may step on behind our back.
            stop.set()
            wait(lanes)
        for lane in lanes:
            lane.result()

    @property
    def is_over(self) -> bool:
        return all(one.is_over for one in self._passes)

    def episodes(self) -> EpisodeTable:
        """Return what happened, in the order of rows."""
        return concatenate([one.episodes() for one in self._passes])


@contextmanager
def _released(turn: Semaphore) -> Iterator[None]:
    """Let go of a turn that this thread has, until the end of the block."""
    turn.release()
    try:
        yield
    finally:
        turn.acquire()
