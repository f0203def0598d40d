"""The environment in Gymnasium."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gymnasium")
pytest.importorskip("torch")
pytest.importorskip("mujoco")

import gymnasium as gym
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import horizon_rl as hz
from horizon_rl.api.registration import ENV_ID, register_env
from horizon_rl.task import TaskCfg

SHORT = TaskCfg(episode_s=0.2)
FOLD = np.tile([0.0, 6.0, -8.0], 4).astype(np.float32)

register_env()  # Whichever was imported first.


@pytest.mark.filterwarnings("ignore:.*Box (action|observation) space")
@pytest.mark.filterwarnings("ignore:.*symmetric and normalized space")
def test_gymnasiums_checker_is_content():
    check_env(gym.make(ENV_ID, num_threads=1).unwrapped, skip_render_check=True)


@pytest.mark.parametrize(
    "imports",
    ["import gymnasium, horizon_rl", "import horizon_rl.api.gymnasium, gymnasium"],
)
def test_name_is_known_once_both_are_imported(imports):
    code = f"{imports}; print(gymnasium.spec('{ENV_ID}').id)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout == f"{ENV_ID}\n", run.stderr


@pytest.mark.parametrize("imports", ["horizon_rl, gymnasium", "gymnasium"])
def test_name_with_its_module_is_known_in_any_order(imports):
    name = f"horizon_rl.api.gymnasium:{ENV_ID}"
    page = (Path(__file__).parents[2] / "docs" / "gymnasium.md").read_text()
    assert name in page
    code = f"import {imports}; print(gymnasium.make('{name}').spec.id)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout == f"{ENV_ID}\n", run.stderr


def test_spaces_hold_what_comes_and_goes():
    envs = gym.make_vec(ENV_ID, num_envs=3, levels=0.5, num_threads=1)
    obs, info = envs.reset(seed=0)
    assert envs.num_envs == 3 and info == {}
    assert envs.observation_space.contains(obs)
    assert envs.single_observation_space.shape == (45,)
    actions = envs.action_space.sample()
    obs, reward, fell, late, _ = envs.step(actions)
    assert envs.observation_space.contains(obs) and reward.shape == (3,)
    assert fell.dtype == late.dtype == bool


def test_single_env_is_the_vector_env_of_one():
    single = gym.make(ENV_ID, task=SHORT, num_threads=1)
    vector = gym.make_vec(ENV_ID, num_envs=1, task=SHORT, num_threads=1)
    one, _ = single.reset(seed=4)
    many, _ = vector.reset(seed=4)
    np.testing.assert_array_equal(one, many[0])
    fell = late = False
    for _ in range(10):
        one, reward, fell, late, _ = single.step(0.1 * np.ones(12, np.float32))
        many, rewards, falls, lates, info = vector.step(0.1 * np.ones((1, 12)))
        assert reward == rewards[0] and (fell, late) == (falls[0], lates[0])
        last = info["final_obs"][0] if late else many[0]
        np.testing.assert_array_equal(one, last)
    assert late and not fell
    # The old episode's, and not the next one's, whose last action is zero.
    assert (one[-12:] != 0.0).all() and (many[0, -12:] == 0.0).all()


def test_ends_are_reported_where_they_are():
    envs = gym.make_vec(ENV_ID, num_envs=3, num_threads=1)
    assert envs.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    envs.reset(seed=0)
    actions = np.zeros((3, 12), np.float32)
    actions[1] = FOLD
    total = 0.0
    step, fell, late, info = 0, np.zeros(3, dtype=bool), np.zeros(3), {}
    while not fell.any() and step < 60:
        step += 1
        _, reward, fell, late, info = envs.step(actions)
        total += reward[1]
        assert fell.any() or info == {}
    assert fell.tolist() == [False, True, False] and not late.any()
    assert info["_final_obs"].tolist() == info["_final_info"].tolist() == fell.tolist()
    assert info["final_obs"][0] is None and info["final_obs"][1].shape == (45,)
    assert info["final_info"]["episode_length"].tolist() == [0, step, 0]
    assert info["final_info"]["episode_return"][1] == pytest.approx(total)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_asynchronous_vector_env_does_not_wait_for_threads_that_are_gone():
    # Its own process: threads, and a fork that may hang.
    code = f"""
import gymnasium, horizon_rl, torch
torch.ones(500, 500) @ torch.ones(500, 500)
env = gymnasium.make("{ENV_ID}")
env.reset(seed=0)
env.step(env.action_space.sample())
kwargs = dict(vectorization_mode="async", vector_kwargs=dict(context="fork"))
envs = gymnasium.make_vec("{ENV_ID}", num_envs=2, **kwargs)
envs.reset(seed=0)
print(envs.step(envs.action_space.sample())[0].shape)
envs.close()
"""
    env = os.environ | {"OMP_NUM_THREADS": "2"}
    command = [sys.executable, "-W", "ignore", "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120)
    assert run.stdout == "(2, 45)\n", run.stderr


def test_seeds_repeat_and_differ():
    envs = gym.make_vec(ENV_ID, num_envs=2, levels=1.0, num_threads=1)
    first, _ = envs.reset(seed=7)
    again, _ = envs.reset(seed=7)
    np.testing.assert_array_equal(first, again)
    assert (envs.reset(seed=8)[0] != first).any()
    assert (envs.reset()[0] != envs.reset()[0]).any()


def test_gymnasiums_wrappers_fit():
    wrappers = gym.wrappers.vector
    envs = gym.make_vec(ENV_ID, num_envs=2, task=SHORT, num_threads=1)
    envs = wrappers.RecordEpisodeStatistics(envs)
    _, info = envs.reset(seed=0)
    for _ in range(10):
        *_, info = envs.step(np.zeros((2, 12), np.float32))
    assert info["episode"]["l"].tolist() == [10, 10]


def test_shipped_policy_walks_in_it():
    policy = hz.load("base-mlp")
    envs = gym.make_vec(ENV_ID, num_envs=8)
    obs, _ = envs.reset(seed=0)
    falls = 0
    for _ in range(150):
        obs, _, fell, late, _ = envs.step(policy(obs))
        policy.reset(fell | late)
        falls += fell.sum()
    assert falls <= 1


def test_example_in_the_docs_runs():
    page = (Path(__file__).parents[2] / "docs" / "gymnasium.md").read_text()
    world: dict = {}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL)[:1]:
        exec(code, world)
    assert world["obs"].shape == (8, 45)
