"""Both actors learn; only the one with a memory learns what needs one."""

import pytest
from toys import SMALL, SMALL_MLP, PointMass, Recall, make_learner, train

from horizon_rl.policies.learned import LearnedPolicy


def mean_reward(learner, env) -> float:
    policy, obs, total = LearnedPolicy(learner.actor), env.reset(), 0.0
    for _ in range(4 * env.max_steps):
        obs, reward, done, _ = env.step(policy.act(obs))
        policy.reset(done)
        total += float(reward.mean())
    return total / (4 * env.max_steps)


@pytest.mark.slow
@pytest.mark.parametrize("actor", [SMALL, SMALL_MLP])
def test_point_mass_learns_to_go_to_its_target(actor):
    learner = make_learner(PointMass(64), actor)
    assert mean_reward(learner, PointMass(64, seed=1)) < -1.5
    train(learner, PointMass(64), 25)
    assert mean_reward(learner, PointMass(64, seed=1)) > -0.4


@pytest.mark.slow
def test_transformer_learns_to_recall_and_an_mlp_cannot():
    transformer, mlp = (make_learner(Recall(64), actor) for actor in (SMALL, SMALL_MLP))
    train(transformer, Recall(64), 15)
    train(mlp, Recall(64), 15)
    assert mean_reward(transformer, Recall(64, seed=1)) > -0.1
    # Shown once in 12 steps: without a memory 11 / 12 of the loss remains.
    assert mean_reward(mlp, Recall(64, seed=1)) < -0.8
