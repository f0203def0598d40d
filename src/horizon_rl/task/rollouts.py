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


@torch.no_grad()
def rollout(
    env: VelocityEnv,
    policy: Policy,
    scenarios: Scenarios,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    rows: range | None = None,
) -> EpisodeTable:
    """Run every scenario once, from its start to its first end, in the order of rows.

    What happens in a scenario depends only on it and the policy: not on how many worlds
    there are, nor on the scenarios that run beside it.

    Args:
        env: Whose worlds to use; with fewer worlds than scenarios, in several passes.
        policy: Acts; should take mean actions and keep its normalisers frozen.
        scenarios: What to run.
        seed: Seed of the sensor noise.
        progress: Called with (control steps done, control steps at most).
        rows: Which of the scenarios to run; all of them without it.
    """
    n, longest = env.num_envs, env.max_episode_length
    rows = range(len(scenarios)) if rows is None else rows
    passes = -(-len(rows) // n)
    tables = []
    with cores_for_physics(env.backend):
        for number in range(passes):
            now = rows[number * n : (number + 1) * n]
            # The last pass may have worlds to spare: they repeat the last scenario.
            worlds = torch.arange(now[0], now[0] + n).clamp(max=now[-1])
            observations = env.begin(scenarios, seed, worlds.to(env.device))
            running = torch.ones(n, dtype=torch.bool, device=env.device)
            policy.reset(running)
            for step in range(1, longest + 1):
                observations, _, done, _ = env.step(policy.act(observations))
                policy.reset(done)
                running &= ~done
                if progress:
                    progress(number * longest + step, passes * longest)
                # Ask only now and then: every answer waits for the device.
                if step % 50 == 0 and not running.any():
                    break
            tables.append(env.episodes.first(len(now)))
    return concatenate(tables)
