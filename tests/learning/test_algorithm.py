"""Another algorithm than PPO needs no other file than its own."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from test_toys import mean_reward
from toys import PPO, SMALL_MLP, PointMass, train

from horizon_rl.learning import (
    LearnerCfg,
    build_actor,
    build_learner,
    register_algorithm,
    restore,
    state_tensors,
    take_snapshot,
)
from horizon_rl.learning.steps import GuardedAdam
from horizon_rl.support.errors import InputError


@register_algorithm("cloning")
class Cloning:
    """Copies an expert that takes the straight way to the target."""

    def __init__(self, observations, num_actions, num_envs, cfg, device, ranks):
        self.actor = build_actor(observations, num_actions, cfg.actor).to(device)
        self.models = {"actor": self.actor}
        self.num_steps, self.learning_rate = cfg.ppo.num_steps, cfg.ppo.learning_rate
        self.adam = GuardedAdam(self.models, self.learning_rate, device)
        self.rollout = []

    def optimizer_tensors(self):
        return self.adam.named_tensors()

    def act(self, obs):
        self.rollout.append(obs)
        return self.actor(obs, stochastic_output=True)

    def process_env_step(self, obs, rewards, dones, extras):
        self.actor.reset(dones)

    def compute_returns(self, obs):
        pass

    def update(self):
        obs: Any = torch.cat(self.rollout)
        position, target = obs["actor"].chunk(2, dim=1)
        self.adam.rate.fill_(self.learning_rate)
        error = torch.zeros(())
        for _ in range(4):
            self.adam.zero_grad()
            error = (self.actor(obs) - 2.0 * (target - position)).square().mean()
            error.backward()
            self.adam.step()
        self.learning_rate *= 0.99
        self.rollout.clear()
        return {"error": error.item()}

    def schedule(self, progress):
        pass

    def forget(self):
        self.rollout.clear()


def make_cloning():
    torch.manual_seed(0)
    env = PointMass(64)
    ppo = replace(PPO, max_learning_rate=1e-2, learning_rate=1e-2)
    cfg = LearnerCfg(algorithm="cloning", actor=SMALL_MLP, ppo=ppo)
    return build_learner(env.reset(), env.num_actions, env.num_envs, cfg)


def test_toy_algorithm_learns_the_toy_task():
    learner = make_cloning()
    assert mean_reward(learner, PointMass(64, seed=1)) < -1.5
    figures = train(learner, PointMass(64), 30)
    assert figures[-1]["error"] < 0.1 * figures[0]["error"]
    assert mean_reward(learner, PointMass(64, seed=1)) > -0.5


def test_toy_algorithm_is_rolled_back_to_the_bit():
    learner = make_cloning()
    train(learner, PointMass(64), 2)
    snapshot = take_snapshot(learner)
    assert any(name.startswith("adam.actor.") for name in snapshot.tensors)

    def go_on():
        torch.manual_seed(7)
        figures = train(learner, PointMass(64, seed=7), 2)
        tensors = {k: v.clone() for k, v in state_tensors(learner).items()}
        return figures, tensors, learner.learning_rate

    first = go_on()
    restore(learner, snapshot)
    for name, value in state_tensors(learner).items():
        assert torch.equal(value, snapshot.tensors[name]), name
    again = go_on()
    assert first[0] == again[0] and first[2] == again[2]
    for name, value in first[1].items():
        assert torch.equal(value, again[1][name]), name


def test_unknown_algorithm_is_refused_by_those_that_exist():
    env = PointMass(8)
    with pytest.raises(InputError, match="unknown algorithm 'pop'.*ppo.*Accepted: ppo"):
        build_learner(env.reset(), 2, 8, LearnerCfg(algorithm="pop"))
