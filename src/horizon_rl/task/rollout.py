"""Rollout: a policy on frozen scenarios, one episode each. Gates and suites share it."""

from collections.abc import Callable
from typing import Protocol

import torch
from tensordict import TensorDict

from horizon_rl.task.env import NUM_ACTIONS, VelocityEnv
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


class Stand:
    """The policy that holds the default pose: the floor of every table."""

    def reset(self, mask: torch.Tensor) -> None:
        pass

    def act(self, observations: TensorDict) -> torch.Tensor:
        actor = observations["actor"]
        return torch.zeros((len(actor), NUM_ACTIONS), device=actor.device)


@torch.no_grad()
def rollout(
    env: VelocityEnv,
    policy: Policy,
    scenarios: Scenarios,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> EpisodeTable:
    """Run every scenario once, from its start to its first end, in the order of rows.

    Args:
        env: Whose worlds to use; with fewer worlds than scenarios, in several passes.
        policy: Acts; should take mean actions and keep its normalisers frozen.
        scenarios: What to run.
        seed: Seed of the sensor noise.
        progress: Called with (control steps done, control steps at most).
    """
    n, total = env.num_envs, len(scenarios)
    passes = -(-total // n)
    tables = []
    for number in range(passes):
        first = number * n
        # The last pass may have worlds to spare: they repeat the last scenario.
        rows = torch.arange(first, first + n).clamp(max=total - 1).to(env.device)
        observations = env.begin(scenarios, seed + number, rows)
        running = torch.ones(n, dtype=torch.bool, device=env.device)
        policy.reset(running)
        for step in range(env.max_episode_length):
            observations, _, done, _ = env.step(policy.act(observations))
            policy.reset(done)
            running &= ~done
            if progress:
                done_steps = number * env.max_episode_length + step + 1
                progress(done_steps, passes * env.max_episode_length)
            # Ask only now and then: every answer waits for the device.
            if step % 50 == 49 and not running.any():
                break
        tables.append(env.episodes.first(min(n, total - first)))
    return concatenate(tables)
