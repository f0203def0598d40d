"""What evaluating costs beside stepping the environment, in one run."""

from typing import Any

import torch
from tensordict import TensorDict

from horizon_rl.bench.simulation import build_env
from horizon_rl.bench.timing import Sizes, median_costs
from horizon_rl.domains import AtLevels
from horizon_rl.evaluation.blocks import Blocks
from horizon_rl.evaluation.evaluate import BLOCK
from horizon_rl.learning import build_actor
from horizon_rl.physics import cores_for_physics
from horizon_rl.policies.learned import LearnedPolicy
from horizon_rl.robots import REFERENCE, build_robot, load_preset
from horizon_rl.task import NUM_ACTIONS, NUM_ACTOR, TaskCfg, rollout
from horizon_rl.training.presets import PolicyKind, Preset, preset_cfg

TASK = TaskCfg(episode_s=2.0)


def measure_evaluation(
    preset: Preset, policy: PolicyKind, sizes: Sizes
) -> dict[str, float]:
    """Time rollouts of a policy, and the same motion by `env.step` alone.

    The policy's last layer is zero: it computes all it has to and stands, so that both
    simulate the same.
    """
    robots, num_envs = [build_robot(load_preset(REFERENCE))], sizes.num_envs
    env, scenarios = build_env(robots, AtLevels({}), num_envs, TASK, sizes)
    shapes = TensorDict({"actor": torch.zeros(1, NUM_ACTOR)}, [1])
    cfg = preset_cfg(preset, policy).learner.actor
    actor: Any = build_actor(shapes, NUM_ACTIONS, cfg).to(env.device).eval()
    last = [m for m in actor.mlp.modules() if isinstance(m, torch.nn.Linear)][-1]
    torch.nn.init.zeros_(last.weight)
    torch.nn.init.zeros_(last.bias)
    still = torch.zeros((num_envs, NUM_ACTIONS), device=env.device)
    units = num_envs * env.max_episode_length

    def step_env() -> int:
        env.begin(scenarios, 0, torch.arange(num_envs, device=env.device))
        for _ in range(env.max_episode_length):
            env.step(still)
        return units

    def evaluate() -> int:
        block = BLOCK if env.device.type == "cpu" else num_envs
        acting = Blocks(
            lambda: LearnedPolicy(actor), num_envs, block, sizes.num_threads
        )
        rollout(env, acting, scenarios)
        return units

    with cores_for_physics(env.backend):
        costs = median_costs({"env": step_env, "evaluation": evaluate}, sizes.repeats)
    return {
        "steps_per_s": 1.0 / costs["evaluation"],
        "env_steps_per_s": 1.0 / costs["env"],
        "ratio": costs["env"] / costs["evaluation"],
    }
