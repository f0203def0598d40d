"""Check that a file acts as the actor it was made from, and measure how fast."""

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

import numpy as np
import torch

from horizon_rl.learning import Actor
from horizon_rl.physics import CONTROL_DT, CpuBackend, Pool
from horizon_rl.policies.learned import LearnedPolicy
from horizon_rl.policies.onnx import OnnxPolicy
from horizon_rl.task import NUM_ACTOR, TaskCfg, VelocityEnv, draw_scenarios

NUM_STEPS = 1000
"""Eight times the transformer's window: its cache slides all the while."""

WARM_UP = 100


@torch.no_grad()
def compare(
    actor: Actor,
    file: OnnxPolicy,
    pool: Pool,
    task: TaskCfg,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[float, np.ndarray]:
    """Let the actor walk one robot, and ask the file at every step what it would do.

    Each keeps its own memory, so that differences add up if they can. Half way the
    episode ends, and both must forget it.

    Returns:
        The largest difference of any action, NaN where either is not a number, and the
        observations [steps, 45].
    """
    task = replace(task, episode_s=NUM_STEPS * CONTROL_DT / 2.0)
    env = VelocityEnv(CpuBackend(pool.robot, num_worlds=1, num_threads=1), task)
    policies = LearnedPolicy(actor), file
    observations = env.begin(draw_scenarios(pool, task, np.random.default_rng(0)), 0)
    differences = np.zeros(NUM_STEPS)
    seen = np.zeros((NUM_STEPS, NUM_ACTOR), np.float32)
    file.reset(torch.ones(1, dtype=torch.bool))
    for step in range(NUM_STEPS):
        seen[step] = observations["actor"].numpy()
        action, twin = (policy.act(observations) for policy in policies)
        differences[step] = np.abs(action.numpy() - twin.numpy()).max()
        observations, _, done, _ = env.step(action)
        for policy in policies:
            policy.reset(done)
        tell(step + 1, NUM_STEPS)
    # `max` carries a NaN through.
    return float(differences.max()), seen


def measure_latency(file: OnnxPolicy, observations: np.ndarray) -> tuple[float, float]:
    """Time single steps, one after the other; return median and 99th percentile, ms."""
    times, memory = [], file.blank(1)
    for obs in observations[:, None]:
        begin = perf_counter()
        file.step(obs, memory)
        times.append(perf_counter() - begin)
    median, p99 = 1e3 * np.percentile(times[WARM_UP:], (50, 99))
    return float(median), float(p99)
