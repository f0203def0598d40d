"""What evaluating a policy costs beside stepping the environment, in one run."""

from functools import partial

import torch
from tensordict import TensorDict

from horizon_rl.bench.simulation import build_env
from horizon_rl.bench.timing import Sizes, median_costs
from horizon_rl.domains import AtLevels
from horizon_rl.evaluation.blocks import Blocks
from horizon_rl.evaluation.evaluate import block_of
from horizon_rl.evaluation.lanes import Lanes
from horizon_rl.physics import cores_for_physics
from horizon_rl.policies.load import EvaluatedPolicy
from horizon_rl.robots import REFERENCE, build_robot, load_preset
from horizon_rl.task import Policy, TaskCfg, rollout
from horizon_rl.task.rollouts import complete

TASK = TaskCfg(episode_s=2.0)


def measure_evaluation(policy: EvaluatedPolicy, sizes: Sizes) -> dict[str, float]:
    """Time rollouts of a policy, and the same motion by `env.step` alone."""
    robots, num_envs = [build_robot(load_preset(REFERENCE))], sizes.num_envs
    env, scenarios = build_env(robots, AtLevels({}), num_envs, TASK, sizes)
    make = partial(policy.make, env.device)
    block = block_of(policy) if env.device.type == "cpu" else num_envs
    kept = KeptActions(Blocks(make, num_envs, block, sizes.num_threads))
    rollout(env, kept, scenarios)
    num_steps = num_envs * len(kept.actions)
    lanes = Lanes(robots[0], TASK, env.device, num_envs, block, sizes.num_threads)

    def evaluate() -> int:
        lanes.begin(make, scenarios, 0, range(num_envs))
        complete(lanes, lanes.longest, lambda step: None)
        return num_steps

    def step_env() -> int:
        env.begin(scenarios, 0, torch.arange(num_envs, device=env.device))
        for action in kept.actions:
            env.step(action)
        return num_steps

    with cores_for_physics(env.backend):
        costs = median_costs({"evaluation": evaluate, "env": step_env}, sizes.repeats)
    return {
        "steps_per_s": 1.0 / costs["evaluation"],
        "env_steps_per_s": 1.0 / costs["env"],
        "ratio": costs["env"] / costs["evaluation"],
    }


class KeptActions:
    """A policy whose actions are kept, so that its motion can be repeated without it."""

    def __init__(self, policy: Policy):
        self._policy, self.actions = policy, list[torch.Tensor]()

    def reset(self, mask: torch.Tensor) -> None:
        self._policy.reset(mask)

    def act(self, observations: TensorDict) -> torch.Tensor:
        self.actions.append(self._policy.act(observations))
        return self.actions[-1]
