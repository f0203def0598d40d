"""Scenarios: everything that happens in an episode besides the policy.

A scenario is an instance with its start state, the commands it will get and the pushes
it will suffer. Training draws new ones for every phase; a probe or a suite freezes them.
The environment cannot tell the difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from horizon_rl.domains import place
from horizon_rl.physics import CONTROL_DT, Pool, join_pools
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
    ids: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    """[m] what sensor noise depends on: a scenario keeps its noise wherever its row is.
    Without it, the row's own number."""

    def __post_init__(self):
        if len(self.ids) == 0:
            object.__setattr__(self, "ids", np.arange(len(self.pool)))

    def __len__(self) -> int:
        return len(self.pool)


def draw_scenarios(pool: Pool, cfg: TaskCfg, rng: np.random.Generator) -> Scenarios:
    """Draw commands and push times for every instance of `pool`."""
    m, num_pushes = pool.push_velocity.shape[:2]
    return Scenarios(
        pool=pool,
        commands=place_commands(rng.random((m, cfg.num_commands, 4)), cfg.command),
        push_steps=place_pushes(rng.random((m, num_pushes)), cfg.push),
    )


def join_scenarios(parts: Sequence[Scenarios]) -> Scenarios:
    """Put scenarios of the same bodies one after the other; each keeps its id."""
    return Scenarios(
        pool=join_pools([part.pool for part in parts]),
        commands=np.concatenate([part.commands for part in parts]),
        push_steps=np.concatenate([part.push_steps for part in parts]),
        ids=np.concatenate([part.ids for part in parts]),
    )


def place_commands(unit: np.ndarray, cfg: CommandCfg) -> np.ndarray:
    """Turn numbers in [0, 1), [..., 4], into velocity commands, [..., 3].

    The fourth decides which of them are to stand still.
    """
    limits = np.array((cfg.max_speed, cfg.max_speed, cfg.max_yaw_rate))
    moving = unit[..., 3:] >= cfg.stand_share
    return (2.0 * unit[..., :3] - 1.0) * limits * moving


def place_pushes(unit: np.ndarray, cfg: PushCfg) -> np.ndarray:
    """Turn numbers in [0, 1), [m, pushes], into control steps from the start.

    An episode begins at a random moment of an endless row of pushes. The wait for the
    first is drawn by the inverse of its distribution: even up to the shortest interval,
    then ever less likely up to the longest.
    """
    low, high = cfg.min_interval_s, cfg.max_interval_s
    times = place(unit, low, high)
    even = 0.5 * (low + high) * unit[:, :1]
    late = high - np.sqrt((1.0 - unit[:, :1]) * (high - low) * (high + low))
    times[:, :1] = np.where(even < low, even, late)
    return np.rint(np.cumsum(times, axis=1) / CONTROL_DT).astype(int)
