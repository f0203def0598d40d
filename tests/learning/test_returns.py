"""Advantages against numbers worked by hand."""

import pytest
import torch
from toys import SMALL_MLP, PointMass, make_learner

REWARDS = [1.0, 0.0, 2.0]
VALUES = [0.5, 1.0, -0.5]
LAST_VALUE = 2.0


def returns_of(dones, time_outs) -> list[float]:
    """Feed one world's three steps to the learner, gamma 0.9, lambda 0.5."""
    env = PointMass(1)
    learner = make_learner(
        env, SMALL_MLP, num_steps=3, num_minibatches=1, gamma=0.9, lam=0.5
    )
    obs = env.reset()
    values = iter([*VALUES, LAST_VALUE])
    learner.critic.forward = lambda obs: torch.full((1, 1), next(values))
    with torch.no_grad():
        for step in range(3):
            learner.act(obs)
            learner.process_env_step(
                obs,
                torch.tensor([REWARDS[step]]),
                torch.tensor([dones[step]]),
                {"time_outs": torch.tensor([time_outs[step]])},
            )
        learner.compute_returns(obs)
    return learner.storage.returns[:, 0, 0].tolist()


def test_returns_of_an_episode_that_goes_on():
    # delta_2 = 2 + 0.9 * 2 + 0.5 = 4.3          A_2 = 4.3
    # delta_1 = 0 - 0.9 * 0.5 - 1 = -1.45        A_1 = -1.45 + 0.45 * 4.3 = 0.485
    # delta_0 = 1 + 0.9 * 1 - 0.5 = 1.4          A_0 = 1.4 + 0.45 * 0.485 = 1.61825
    no = [False] * 3
    assert returns_of(no, no) == pytest.approx([2.11825, 1.485, 3.8])


def test_fall_is_worth_nothing_after_it():
    # delta_1 = 0 - 1 = -1, and nothing flows back over the fall:
    # A_1 = -1, A_0 = 1.4 - 0.45 = 0.95.
    fall = [False, True, False]
    assert returns_of(fall, [False] * 3) == pytest.approx([1.45, 0.0, 3.8])


def test_timeout_is_worth_what_the_critic_expects():
    # The reward becomes 0 + 0.9 * 1 = 0.9, so delta_1 = 0.9 - 1 = -0.1:
    # A_1 = -0.1, A_0 = 1.4 - 0.045 = 1.355.
    end = [False, True, False]
    assert returns_of(end, end) == pytest.approx([1.855, 0.9, 3.8])


def test_advantages_have_mean_zero_and_unit_spread():
    env = PointMass(8)
    learner = make_learner(env, SMALL_MLP)
    obs = env.reset()
    with torch.no_grad():
        for _ in range(learner.cfg.num_steps):
            obs, reward, done, extras = env.step(learner.act(obs))
            learner.process_env_step(obs, reward, done, extras)
        learner.compute_returns(obs)
    advantages = learner.storage.advantages
    assert float(advantages.mean()) == pytest.approx(0.0, abs=1e-5)
    assert float(advantages.std()) == pytest.approx(1.0, abs=1e-5)
