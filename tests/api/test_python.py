"""`import horizon_rl as hz`."""

import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import horizon_rl as hz
from horizon_rl.domains import AtLevels, paper_catalogue
from horizon_rl.support.errors import InputError

pytest.importorskip("torch")
pytest.importorskip("mujoco")

from horizon_rl.policies.deployment import export_policy
from horizon_rl.task import TaskCfg
from horizon_rl.training.protocols import Iteration

SHORT = TaskCfg(episode_s=0.2)


def observations(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 45)).astype(np.float32)


def roll(policy, env, seed=0, steps=12) -> np.ndarray:
    obs, _ = env.reset(seed=seed)
    policy.reset()
    seen = []
    for _ in range(steps):
        obs, _, fell, late, _ = env.step(policy(obs))
        policy.reset(fell | late)
        seen.append(obs)
    return np.stack(seen)


def test_import_loads_nothing():
    code = "import sys, horizon_rl as hz; assert 'load' in dir(hz); "
    code += "print({'numpy', 'torch', 'mujoco', 'tyro'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout == "set()\n", run.stderr


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        hz.lod  # noqa: B018


# Policies.


@pytest.mark.parametrize("name", ["core", "base-mlp"])
def test_one_robot_acts_as_the_same_robot_among_others(name):
    policy, alone = hz.load(name), hz.load(name)
    for seed in range(5):
        obs = observations(3, seed)
        together, single = policy(obs), alone(obs[1])
        assert together.shape == (3, 12) and single.shape == (12,)
        assert together.dtype == np.float32
        np.testing.assert_allclose(single, together[1], atol=1e-5)


def test_memory_is_inside_and_reset_empties_it():
    policy, obs, past = hz.load("core"), observations(2), observations(2, seed=1)
    first = policy(obs)
    policy.reset()
    policy(past)
    second = policy(obs)
    assert np.abs(second - first).max() > 1e-3
    policy.reset()
    np.testing.assert_array_equal(policy(obs), first)
    policy.reset()
    policy(past)
    policy.reset(np.array([True, False]))
    third = policy(obs)
    np.testing.assert_allclose(third[0], first[0], atol=1e-5)
    np.testing.assert_allclose(third[1], second[1], atol=1e-5)


def test_every_form_of_a_policy_can_be_loaded(tmp_path, short_exports):
    path = tmp_path / "p.onnx"
    path.write_bytes(export_policy("base-mlp").content)
    obs = observations(2)
    np.testing.assert_allclose(hz.load(path)(obs), hz.load("base-mlp")(obs), atol=1e-4)
    assert (hz.load("stand")(obs) == 0.0).all()
    assert (hz.load(lambda seen: np.ones((len(seen), 12)))(obs) == 1.0).all()
    with pytest.raises(InputError, match="did you mean 'core'"):
        hz.load("coer")


def test_wrong_shapes_are_refused():
    policy = hz.load("stand")
    with pytest.raises(InputError, match=r"shape \(44,\); accepted: \(45,\)"):
        policy(np.zeros(44))
    policy(np.zeros((3, 45)))
    with pytest.raises(
        InputError, match="obs has 2 robots, the memory is of 3: call pol"
    ):
        policy(np.zeros((2, 45)))
    with pytest.raises(InputError, match=r"mask of shape \(2,\); accepted: \(3,\)"):
        policy.reset(np.zeros(2))


# Environments.


def test_seed_decides_everything_and_only_it():
    env = hz.make_env(num_envs=3, levels=0.5, task=SHORT, num_threads=1)
    policy = hz.load("base-mlp")
    first = roll(policy, env, seed=1)
    np.testing.assert_array_equal(roll(policy, env, seed=1), first)
    other = hz.make_env(num_envs=3, levels=0.5, task=SHORT, num_threads=2)
    np.testing.assert_array_equal(roll(policy, other, seed=1), first)
    assert (roll(policy, env, seed=2) != first).any()
    assert (env.reset()[0] != env.reset()[0]).any()


def test_time_limit_is_a_truncation_with_the_last_observation_kept():
    env = hz.make_env(num_envs=2, task=SHORT, num_threads=1)
    obs, info = env.reset(seed=0)
    actions = np.full((2, 12), 0.1)
    for step in range(1, 11):
        obs, reward, fell, late, info = env.step(actions)
        assert reward.shape == (2,) and not fell.any()
        assert late.all() == late.any() == (step == env.max_episode_steps == 10)
        if step < 10:
            np.testing.assert_array_equal(info["final_obs"], obs)
    # The last 12 numbers are the last action: the new episode has none yet.
    assert (obs[:, -12:] == 0.0).all()
    np.testing.assert_allclose(info["final_obs"][:, -12:], 0.1, atol=1e-6)


def test_fall_is_a_termination():
    env = hz.make_env(num_envs=2, num_threads=1)
    env.reset(seed=0)
    fold = np.tile([0.0, 6.0, -8.0], (2, 4))
    ends = np.zeros(2, dtype=bool)
    for _ in range(60):
        _, _, fell, late, info = env.step(fold)
        assert not late.any()
        ends |= fell
    assert ends.all()


def test_robots_can_be_driven():
    env, policy = hz.make_env(num_envs=2), hz.load("base-mlp")
    env.reset(seed=0)
    obs = env.drive([0.6, 0.0, 0.0])
    np.testing.assert_allclose(obs[:, 6:9], [[0.6, 0.0, 0.0]] * 2, atol=1e-6)
    for _ in range(150):
        obs, *_ = env.step(policy(obs))
    np.testing.assert_allclose(env.command, [[0.6, 0.0, 0.0]] * 2, atol=1e-6)
    assert (env.velocity[:, 0] > 0.3).all()


def test_terrain_is_how_rough_the_ground_is():
    from horizon_rl.robots.terrain import TERRAIN

    rough = hz.make_env(num_envs=8, levels=0.5, terrain=1.0, task=SHORT)
    rough.reset(seed=0)
    assert rough._robot.ground is TERRAIN
    levels = dict.fromkeys(paper_catalogue().names, 0.5) | {"terrain": 1.0}
    assert rough._levels == AtLevels(levels)
    flat = hz.make_env(num_envs=8, levels=0.5, task=SHORT)
    assert flat._robot.ground is not TERRAIN
    with pytest.raises(InputError, match="unknown group 'terrain'"):
        hz.make_env(terrain=0.5, catalogue=paper_catalogue())
    with pytest.raises(InputError, match="2"):
        hz.make_env(terrain=2.0)
    with pytest.raises(InputError, match="given twice"):
        hz.make_env(terrain=1.0, levels={"terrain": 0.2})


def test_terrain_0_is_flat_whatever_the_other_levels():
    env = hz.make_env(num_envs=2, catalogue="extended", levels=0.5, terrain=0.0)
    assert env._levels.levels["terrain"] == 0.0
    assert hz.make_env(num_envs=2, levels="all=0.5", terrain=1.0)._levels == AtLevels(
        dict.fromkeys(paper_catalogue().names, 0.5) | {"terrain": 1.0}
    )
    assert "terrain" not in hz.make_env(num_envs=2, terrain=0.0)._levels.levels


def test_levels_are_how_wide_physics_is():
    def spread(levels):
        env = hz.make_env(num_envs=64, levels=levels)
        env.reset(seed=0)
        backend: Any = env.torch_env.backend
        return np.ptp(backend._fields["body_mass"].sum(axis=1))

    assert spread({"mass": 1.0}) > 5.0 * spread(0.0)
    assert spread("mass=1.0") == spread({"mass": 1.0})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"robot": "go3"}, "did you mean 'go2'"),
        ({"num_envs": 0}, "num_envs is 0"),
        ({"levels": {"mess": 0.5}}, "unknown group 'mess'"),
        ({"levels": 2.0}, "2"),
        ({"levels": "mass"}, "not of the form group=number"),
        ({"catalogue": "no.toml"}, "cannot read catalogue"),
        ({"num_envs": "4"}, "num_envs is '4'; accepted: whole numbers, 1.."),
        ({"num_threads": "x"}, "num_threads is 'x'; accepted: whole numbers"),
        ({"terrain": "stairs"}, "terrain is 'stairs'; accepted: a number, 0..1"),
        ({"levels": [0.5]}, r"levels is \[0.5\]; accepted: a number, 0..1"),
        ({"levels": {"mass": "x"}}, "level mass is 'x'; accepted: a number, 0..1"),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        hz.make_env(**options)


def test_environment_says_what_it_is():
    assert repr(hz.make_env("a1", num_envs=2)) == "NumpyEnv('a1', num_envs=2)"


def test_bad_actions_are_refused():
    env = hz.make_env(num_envs=2)
    with pytest.raises(InputError, match="call reset"):
        env.step(np.zeros((2, 12)))
    env.reset(seed=0)
    with pytest.raises(InputError, match=r"shape \(12,\); accepted: \(2, 12\)"):
        env.step(np.zeros(12))


def test_bad_commands_are_refused_and_close_does_no_harm():
    env = hz.make_env(num_envs=2, num_threads=1)
    env.reset(seed=0)
    with pytest.raises(InputError, match=r"shape \(2,\); accepted: \(3,\) or \(2, 3\)"):
        env.drive([0.8, 0.0])
    for command in ([0.8, 0.0, 0.0], [[0.8, 0.0, 0.0]] * 2):
        assert env.drive(command).shape == (2, 45)
    env.close()
    env.close()


@pytest.mark.parametrize("robots", [[5, 7], [0, 1], [1.0, 0.0]])
def test_numbers_of_robots_are_no_mask(robots):
    policy = hz.load("base-mlp")
    policy(observations(2))
    with pytest.raises(InputError, match="accepted: True or False for each robot"):
        policy.reset(robots)


# Evaluation and training.


@pytest.mark.parametrize("severity", ["0.5", [0.5]])
def test_severity_that_is_no_number_is_refused(severity):
    with pytest.raises(InputError, match="accepted: a number, 0..1"):
        hz.evaluate("stand", severity=severity, episodes=1)


def test_evaluation_is_that_of_the_command(tmp_path, monkeypatch, capsys):
    from horizon_rl.cli import main

    monkeypatch.setenv("HORIZON_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    suite = "episodes = 3\n[task]\nepisode_s = 0.2\n[columns]\na = {}\nb = {}\n"
    (tmp_path / "mine.toml").write_text(suite)
    result = hz.evaluate(hz.load("base-mlp"), "mine.toml", columns=["a"], floor=True)
    args = ["eval", "base-mlp", "--suite", "mine.toml", "--columns", "a"]
    assert main([*args, "--json", "a.json"]) == 0
    import json

    assert result.record == json.loads((tmp_path / "a.json").read_text())
    assert list(result.success) == ["a"] and len(result.episodes["a"]) == 3
    assert "base-mlp in mine (dev)" in str(result)
    assert "| a |" in result._repr_markdown_()
    # Columns as the command line writes them.
    assert list(hz.evaluate("base-mlp", "mine.toml", columns="a").success) == ["a"]
    assert set(hz.evaluate("stand", "mine.toml", columns="a,b").success) == {"a", "b"}


def test_function_can_be_evaluated(tmp_path):
    (tmp_path / "mine.toml").write_text(
        "episodes = 2\n[task]\nepisode_s = 0.1\n[columns]\na = {}\n"
    )
    result = hz.evaluate(
        lambda obs: np.zeros((len(obs), 12)), str(tmp_path / "mine.toml")
    )
    assert result.record["policy"] == "<lambda>"


def test_preset_has_a_policy_unless_told():
    assert hz.preset_cfg("laptop") == hz.preset_cfg("laptop", "mlp")
    assert hz.preset_cfg("gpu") == hz.preset_cfg("gpu", "transformer")


def test_settings_of_a_training_are_no_name():
    with pytest.raises(InputError, match="cfg is 'laptop'; accepted: a TrainCfg"):
        hz.train("laptop")  # pyright: ignore[reportArgumentType]


def test_training_yields_its_events_and_can_be_resumed(tmp_path):
    cfg = replace(hz.preset_cfg("smoke", "mlp"), steps=5000)
    training = hz.train(cfg, path=tmp_path / "run", device="cpu")
    assert "base-mlp" in training.run.start, "as the command does"
    # `base-mlp` masters the baseline already: the first phase has no iteration.
    first = next(event for event in training if isinstance(event, Iteration))
    assert first.env_steps > 0
    # The loop was left: the run is free, and goes on.
    events = list(hz.train(resume=tmp_path / "run", device="cpu"))
    phases = [event for event in events if hasattr(event, "decision")]
    assert phases and len(events) > len(phases)
    again = hz.train(resume=tmp_path / "run", device="cpu")
    assert again.ended and set(again.levels) == {
        "actuation",
        "mass",
        "disturbance",
        "com",
    }
    assert repr(again) == f"Training({str(tmp_path / 'run')!r}, {again.ended})"
    assert again.policy()(observations(1)).shape == (1, 12)
    again.run.close()


def test_run_that_stands_there_is_refused(tmp_path):
    cfg = hz.preset_cfg("smoke", "mlp")
    hz.train(cfg, path=tmp_path / "run", device="cpu").run.close()
    with pytest.raises(InputError):
        hz.train(cfg, path=tmp_path / "run", device="cpu")


def test_code_of_a_strangers_run_is_trusted_by_an_argument(tmp_path, monkeypatch):
    from horizon_rl.support.trust import require_trust
    from horizon_rl.training.run import Run

    monkeypatch.setenv("HORIZON_CACHE", str(tmp_path / "cache"))
    (tmp_path / "code.py").write_text("def loosen(): ...\n")

    def resume(path, *, device, trust):
        if not trust:
            require_trust(path, [f"{tmp_path / 'code.py'}:loosen"])
        return SimpleNamespace(path=path)

    monkeypatch.setattr(Run, "resume", resume)
    with pytest.raises(InputError, match="then pass trust=True$"):
        hz.train(resume=tmp_path)
    assert hz.train(resume=tmp_path, trust=True).path == tmp_path
    with pytest.raises(InputError, match="trust goes with resume"):
        hz.train(trust=True)
