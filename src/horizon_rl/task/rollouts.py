"""Rollout: a policy on frozen scenarios, one episode each. Gates and suites share it."""

from collections.abc import Callable
from typing import Protocol

import torch
from tensordict import TensorDict

from horizon_rl.physics import cores_for_physics
from horizon_rl.task.env import VelocityEnv
from horizon_rl.task.episodes import EpisodeTable, concatenate
from horizon_rl.task.scenarios import Scenarios


class Policy(Protocol):
    """Anything that acts: a checkpoint, an exported file, a function in a wrapper."""

    def reset(self, mask: torch.Tensor) -> None:
        """Forget the history of the worlds in `mask` [n]: their episode begins."""
        ...

    def act(self, observations: TensorDict) -> torch.Tensor:
        """Return actions [n, 12] for the observation groups."""
        ...


SLICE = 50
"""Control steps between two times that somebody asks whether all episodes are over."""


class Pass:
    """Worlds on their way through scenarios, each from the start to its first end."""

    def __init__(
        self,
        env: VelocityEnv,
        policy: Policy,
        scenarios: Scenarios,
        seed: int,
        rows: range,
    ):
        """Begin the scenarios in `rows`, of which there are no more than worlds."""
        self._env, self._policy, self._num_rows = env, policy, len(rows)
        # There may be worlds to spare: they repeat the last scenario.
        worlds = torch.arange(rows[0], rows[0] + env.num_envs).clamp(max=rows[-1])
        self._observations = env.begin(scenarios, seed, worlds.to(env.device))
        self._running = torch.ones_like(worlds, dtype=torch.bool, device=env.device)
        policy.reset(self._running)

    @torch.no_grad()
    def advance(self, num_steps: int) -> None:
        """Let the policy act and the worlds go on, for this many control steps."""
        for _ in range(num_steps):
            actions = self._policy.act(self._observations)
            self._observations, _, done, _ = self._env.step(actions)
            self._policy.reset(done)
            self._running &= ~done

    @property
    def is_over(self) -> bool:
        """Whether all have ended; asking waits for the device."""
        return not self._running.any()

    def episodes(self) -> EpisodeTable:
        """Return what happened, in the order of rows."""
        return self._env.episodes.first(self._num_rows)


class Moving(Protocol):
    """Worlds on their way: a `Pass`, or several side by side."""

    def advance(self, num_steps: int) -> None: ...

    @property
    def is_over(self) -> bool: ...

    def episodes(self) -> EpisodeTable: ...


def complete(
    worlds: Moving, longest: int, progress: Callable[[int], None]
) -> EpisodeTable:
    """Step worlds until all have ended, at most `longest` times.

    Now and then it calls `progress` with the steps done, and asks whether all is over:
    every answer waits for the device.
    """
    for first in range(0, longest, SLICE):
        num_steps = min(SLICE, longest - first)
        worlds.advance(num_steps)
        progress(first + num_steps)
        if worlds.is_over:
            break
    return worlds.episodes()


def rollout(
    env: VelocityEnv,
    policy: Policy,
    scenarios: Scenarios,
    seed: int = 0,
) -> EpisodeTable:
    """Run every scenario once, from its start to its first end, in the order of rows.

    What happens in a scenario depends only on it and the policy: not on how many worlds
    there are, nor on the scenarios that run beside it.

    Args:
        env: Whose worlds to use; with fewer worlds than scenarios, in several passes.
        policy: Acts; should take mean actions and keep its normalisers frozen.
        scenarios: What to run.
        seed: Seed of the sensor noise.
    """
    rows, tables = range(len(scenarios)), []
    with cores_for_physics(env.backend):
        for first in rows[:: env.num_envs]:
            now = rows[first : first + env.num_envs]
            one = Pass(env, policy, scenarios, seed, now)
            tables.append(complete(one, env.max_episode_length, lambda step: None))
    return concatenate(tables)
