"""Scenarios: everything that happens in an episode besides the policy.

A scenario is an instance with its start state, the commands it will get and the pushes
it will suffer. Training draws them afresh for every phase; a probe or a suite freezes
them. The environment cannot tell the difference.
"""

from dataclasses import dataclass

import numpy as np

from horizon_rl.physics import CONTROL_DT, Pool
from horizon_rl.task.config import CommandCfg, PushCfg, TaskCfg


@dataclass(frozen=True, eq=False)
class Scenarios:
    """m scenarios, one per row of the pool."""

    pool: Pool
    """Instances, start states, push velocities."""
    commands: np.ndarray
    """[m, num_commands, 3] one after the other: velocities, m/s; yaw rate, rad/s."""
    push_steps: np.ndarray
    """[m, pushes] control step before which each push comes."""

    def __len__(self) -> int:
        return len(self.pool)


def draw_scenarios(pool: Pool, cfg: TaskCfg, rng: np.random.Generator) -> Scenarios:
    """Draw commands and push times for every instance of `pool`."""
    m, num_pushes = pool.push_velocity.shape[:2]
    return Scenarios(
        pool=pool,
        commands=draw_commands(cfg.command, (m, cfg.num_commands), rng),
        push_steps=draw_push_steps(cfg.push, (m, num_pushes), rng),
    )


def draw_commands(
    cfg: CommandCfg, shape: tuple[int, int], rng: np.random.Generator
) -> np.ndarray:
    """Draw velocity commands, [*shape, 3]; some are to stand still."""
    limits = np.array((cfg.max_speed, cfg.max_speed, cfg.max_yaw_rate))
    commands = rng.uniform(-1.0, 1.0, (*shape, 3)) * limits
    moving = rng.random(shape) >= cfg.stand_share
    return commands * moving[..., None]


def draw_push_steps(
    cfg: PushCfg, shape: tuple[int, int], rng: np.random.Generator
) -> np.ndarray:
    """Draw when pushes come, in control steps from the episode's start."""
    intervals = rng.uniform(cfg.min_interval_s, cfg.max_interval_s, shape)
    return np.rint(np.cumsum(intervals, axis=1) / CONTROL_DT).astype(int)
