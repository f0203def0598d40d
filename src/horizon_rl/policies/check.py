"""Whether a file acts as the actor that it was made from, and how fast."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
import torch
from rsl_rl.models import MLPModel

from horizon_rl.physics import CONTROL_DT, CpuBackend, Pool
from horizon_rl.policies.learned import LearnedPolicy
from horizon_rl.policies.onnx_robot import OnnxRobot
from horizon_rl.task import NUM_ACTOR, TaskCfg, VelocityEnv, draw_scenarios

NUM_STEPS = 1000
"""Eight times the transformer's window: its cache slides all the while."""

WARM_UP = 100


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """A file beside its actor, on the observations of one robot that walks."""

    largest_difference: float
    """Of any action; NaN where either is not a number."""
    observations: np.ndarray
    """[steps, 45] what the robot saw."""


@dataclass(frozen=True, kw_only=True)
class Latency:
    """Time for one step, ms."""

    median_ms: float
    p99_ms: float


@torch.no_grad()
def compare(
    actor: MLPModel,
    robot: OnnxRobot,
    pool: Pool,
    task: TaskCfg,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> Comparison:
    """Let the actor walk, and ask the file at every step what it would do.

    Each side carries its own memory, so that differences add up if they can. Half way
    the episode ends, and both must forget alike.
    """
    task = replace(task, episode_s=NUM_STEPS * CONTROL_DT / 2.0)
    env = VelocityEnv(CpuBackend(pool.robot, num_worlds=1, num_threads=1), task)
    policy = LearnedPolicy(actor)
    observations = env.begin(draw_scenarios(pool, task, np.random.default_rng(0)), 0)
    differences = np.zeros(NUM_STEPS)
    seen = np.zeros((NUM_STEPS, NUM_ACTOR), np.float32)
    robot.reset()
    for step in range(NUM_STEPS):
        seen[step] = observations["actor"].numpy()
        action = policy.act(observations)
        twin = robot.act(seen[step : step + 1])
        differences[step] = np.abs(action.numpy() - twin).max()
        observations, _, done, _ = env.step(action)
        policy.reset(done)
        if done:
            robot.reset()
        tell(step + 1, NUM_STEPS)
    # `max` carries a NaN through.
    return Comparison(largest_difference=differences.max(), observations=seen)


def measure_latency(robot: OnnxRobot, observations: np.ndarray) -> Latency:
    """Time single steps, one after the other, as long as there are observations."""
    times = []
    for obs in observations[:, None]:
        begin = perf_counter()
        robot.act(obs)
        times.append(perf_counter() - begin)
    median, p99 = 1e3 * np.percentile(times[WARM_UP:], (50, 99))
    return Latency(median_ms=float(median), p99_ms=float(p99))
