"""The policy that an update starts from is the policy that acted."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from toys import (
    CRITIC,
    PPO,
    SMALL,
    SMALL_MLP,
    Falling,
    collect,
    make_learner,
    train,
)

from horizon_rl.learning import LearnerCfg, TransformerCfg, build_learner


def disagreement(learner) -> float:
    """Return the greatest change of a mean between rollout and update."""
    batch = learner.storage.minibatch(torch.arange(learner.storage.num_envs))
    with torch.no_grad():
        means = learner.actor(batch.observations, hidden_state=batch.past)
    return float((means - batch.old_distribution_params[0]).abs().max())


@pytest.mark.parametrize(
    "actor", [SMALL, replace(SMALL, num_layers=2, window=7), SMALL_MLP]
)
def test_first_minibatch_has_no_divergence_in_any_iteration(actor):
    env = Falling(16)
    learner = make_learner(env, actor, check_first_kl=True)
    figures = train(learner, env, 8)
    assert max(abs(f["first_kl"]) for f in figures) < 1e-6
    assert min(f["kl"] for f in figures) > 1e-5  # It did learn.


def test_means_agree_after_every_update():
    env = Falling(16)
    learner = make_learner(env)
    obs = env.reset()
    for _ in range(6):
        obs = collect(learner, env, obs)
        assert disagreement(learner) < 1e-5
        learner.update()


def test_check_notices_a_cache_that_was_not_rebuilt(monkeypatch):
    env = Falling(16)
    learner = make_learner(env, replace(SMALL, window=47), check_first_kl=True)
    # Room for all that follows: the cache would last without being rebuilt.
    monkeypatch.setattr(learner.actor, "max_steps", 64)
    train(learner, env, 2)
    live = learner.actor.live
    monkeypatch.setattr(
        learner.actor, "begin_rollout", lambda num_worlds: live.history()
    )
    with pytest.raises(AssertionError, match="not the update's"):
        train(learner, env, 2)


def test_first_minibatch_has_no_divergence_on_the_robot():
    pytest.importorskip("mjbatch")
    from horizon_rl.domains import AtLevels, paper_catalogue
    from horizon_rl.physics import CpuBackend, sample_pool
    from horizon_rl.robots import build_robot, load_preset
    from horizon_rl.task import TaskCfg, VelocityEnv, draw_scenarios

    rng, catalogue = np.random.default_rng(0), paper_catalogue()
    go2, cfg = build_robot(load_preset("go2")), TaskCfg(episode_s=1.0)
    env = VelocityEnv(CpuBackend(go2, 8), cfg)
    # A centre of mass outside the trunk: some will fall.
    wide = AtLevels({"reset": 1.0, "com": 1.0})
    pool = sample_pool([go2], catalogue, wide, 32, rng)
    obs = env.begin(draw_scenarios(pool, cfg, rng), seed=0)
    ppo = replace(PPO, num_steps=24, num_epochs=1, check_first_kl=True)
    torch.manual_seed(0)
    learner = build_learner(
        obs, 12, 8, LearnerCfg(actor=TransformerCfg(), critic=CRITIC, ppo=ppo)
    )
    for _ in range(7):  # 168 steps: past the window.
        obs = collect(learner, env, obs)
        assert disagreement(learner) < 1e-4
        assert abs(learner.update()["first_kl"]) < 1e-6
    episodes = env.episodes.table()
    assert len(episodes) > 8 and (episodes.cause > 0).any()
