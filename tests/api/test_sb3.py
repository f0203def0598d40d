"""The environment in Stable-Baselines3."""

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("mujoco")

import stable_baselines3 as sb3
from stable_baselines3.common.vec_env import VecNormalize

import horizon_rl as hz
from horizon_rl.api.sb3 import HorizonSb3Env, as_function
from horizon_rl.task import TaskCfg

SHORT = TaskCfg(episode_s=0.2)
EXAMPLE = Path(__file__).parents[2] / "examples" / "sb3_ppo.py"


def test_end_of_an_episode_comes_with_its_last_observation():
    env = HorizonSb3Env(2, task=SHORT, num_threads=1)
    env.seed(0)
    obs: Any = env.reset()
    infos = []
    for step in range(1, 11):
        obs, reward, done, infos = env.step(np.full((2, 12), 0.1))
        assert done.tolist() == [step == 10] * 2 and reward.shape == (2,)
    for world, info in enumerate(infos):
        assert info["TimeLimit.truncated"] is True and info["episode"]["l"] == 10
        last = info["terminal_observation"]
        np.testing.assert_allclose(last[-12:], 0.1, atol=1e-6)
        assert (obs[world, -12:] == 0.0).all()
    *_, done, infos = env.step(np.zeros((2, 12)))
    assert infos == [{}, {}] and not done.any()


def test_fall_is_no_time_limit():
    env = HorizonSb3Env(1, num_threads=1)
    env.reset()
    infos = []
    for _ in range(60):
        *_, done, infos = env.step(np.tile([0.0, 6.0, -8.0], (1, 4)))
        if done[0]:
            break
    assert infos[0]["TimeLimit.truncated"] is False


def test_seed_is_taken_once():
    env = HorizonSb3Env(2, levels=1.0, num_threads=1)
    env.seed(3)
    first, second = env.reset(), env.reset()
    assert (first != second).any()
    env.seed(3)
    np.testing.assert_array_equal(env.reset(), first)


def test_ppo_learns_in_it_and_is_evaluated(tmp_path):
    env = VecNormalize(HorizonSb3Env(4, task=SHORT, num_threads=1))
    model = sb3.PPO("MlpPolicy", env, n_steps=16, batch_size=32, device="cpu", seed=0)
    model.learn(128)
    assert model.num_timesteps >= 128
    (tmp_path / "mine.toml").write_text(
        "episodes = 2\n[task]\nepisode_s = 0.1\n[columns]\na = {}\n"
    )
    result = hz.evaluate(as_function(model, env), str(tmp_path / "mine.toml"))
    assert np.isfinite(result.record["columns"]["a"]["tracking_error"])


@pytest.mark.manual
def test_ppo_walks_better_than_standing(monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE)])
    errors = runpy.run_path(str(EXAMPLE))["main"]()
    assert errors["SB3 PPO"] < 0.8 * errors["standing"]
