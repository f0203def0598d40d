"""The environment, step by step."""

import dataclasses

import numpy as np
import pytest
import torch

from horizon_rl.physics import CpuBackend
from horizon_rl.robots import FLAT
from horizon_rl.support.errors import InputError
from horizon_rl.task import (
    FALL_CAUSES,
    NUM_ACTOR,
    CommandCfg,
    NoiseCfg,
    RewardCfg,
    TaskCfg,
    VelocityEnv,
)
from horizon_rl.task.episodes import EpisodeTable, succeeded
from horizon_rl.task.observations import observe_motion
from horizon_rl.task.rewards import total_reward

ZERO = torch.zeros((4, 12))


def begin(env, scenarios, seed=0):
    return env.begin(scenarios, seed, rows=torch.arange(env.num_envs))


def test_observation_groups_hold_what_they_say(make_env, make_scenarios):
    env = make_env()
    scenarios = make_scenarios(env.cfg)
    begin(env, scenarios)
    action = torch.linspace(-1.0, 1.0, 48).reshape(4, 12)
    observations, *_ = env.step(action)
    state, pool = env.backend.state, scenarios.pool
    pose = torch.from_numpy(pool.default_pose[:4]).float()
    motion = observe_motion(state, pose, FLAT)
    actor = observations["actor"]
    assert actor.shape == (4, NUM_ACTOR) == (4, 45)
    torch.testing.assert_close(actor[:, 0:3], state.angular_velocity)
    torch.testing.assert_close(actor[:, 3:6], motion.gravity)
    commands = torch.from_numpy(scenarios.commands[:4, 0]).float()
    torch.testing.assert_close(actor[:, 6:9], commands)
    torch.testing.assert_close(actor[:, 9:21], motion.joint_offset)
    torch.testing.assert_close(actor[:, 21:33], state.joint_velocity)
    torch.testing.assert_close(actor[:, 33:45], action)
    critic = observations["critic"]
    torch.testing.assert_close(critic[:, :45], actor)
    torch.testing.assert_close(critic[:, 45:48], motion.linear_velocity)
    assert set(critic[:, 48:52].unique().tolist()) <= {0.0, 1.0}
    torch.testing.assert_close(critic[:, 52], state.root_position[:, 2])
    privileged = observations["privileged"].numpy()
    np.testing.assert_allclose(privileged[:, :5], 1.0, rtol=1e-6)  # Go2 itself.
    np.testing.assert_allclose(privileged[:, 5:], pool.parameters[:4], rtol=1e-5)
    assert np.abs(privileged[:, 5:]).max() <= 1.0 + 1e-6


def test_sensor_noise_reaches_the_actor_alone(make_env, make_scenarios):
    env = make_env(num_envs=64, noise=NoiseCfg())
    observations = begin(env, make_scenarios(env.cfg, m=64))
    noise = observations["actor"] - observations["critic"][:, :45]
    limits = torch.tensor([0.2] * 3 + [0.05] * 3 + [0.0] * 3 + [0.01] * 12 + [1.5] * 12)
    largest = noise.abs().amax(dim=0)
    assert (largest[:33] <= limits + 1e-6).all()
    assert (largest[:33] >= 0.8 * limits).all()
    assert largest[33:].max() < 1e-6


def test_actions_are_offsets_from_the_default_pose(make_env, make_scenarios):
    env = make_env()
    scenarios = make_scenarios(env.cfg)
    begin(env, scenarios)
    targets = []
    env.backend.step = lambda t: targets.append(t.clone())
    env.step(torch.full((4, 12), 2.0))
    expected = torch.from_numpy(scenarios.pool.default_pose[:4]).float() + 0.5
    torch.testing.assert_close(targets[0], expected)


def test_command_changes_after_ten_seconds(make_env, make_scenarios):
    env = make_env(episode_s=0.2, command=CommandCfg(hold_s=0.1))
    scenarios = make_scenarios(env.cfg)
    seen = [begin(env, scenarios)["actor"][0, 6:9]]
    for _ in range(9):
        observations, *_ = env.step(ZERO)
        seen.append(observations["actor"][0, 6:9])
    first, second = torch.from_numpy(scenarios.commands[0]).float()
    for step, command in enumerate(seen):
        torch.testing.assert_close(command, first if step < 5 else second)


def test_push_adds_exactly_its_velocity_before_its_step(make_env, make_scenarios):
    env = make_env()
    scenarios = make_scenarios(env.cfg, levels={"disturbance": 1.0})
    scenarios = dataclasses.replace(
        scenarios, push_steps=np.full_like(scenarios.push_steps, 3)
    )
    begin(env, scenarios)
    pushes = []
    push = env.backend.push
    env.backend.push = lambda v: (pushes.append(v.clone()), push(v))
    for _ in range(5):
        env.step(ZERO)
    # Both pushes of a scenario fall on step 3 here: they add up.
    expected = torch.from_numpy(scenarios.pool.push_velocity[:4].sum(axis=1)).float()
    for step, velocity in enumerate(pushes):
        torch.testing.assert_close(velocity, expected if step == 3 else 0.0 * expected)


def test_trunk_on_the_ground_ends_the_episode_as_a_fall(make_env, make_scenarios):
    env = make_env()
    begin(env, make_scenarios(env.cfg, actuation__effort_limit=0.0))
    steps = (env.step(ZERO) for _ in range(100))
    _, _, done, extras = next(step for step in steps if step[2].any())
    assert done.any() and not extras["time_outs"].any()
    cause = FALL_CAUSES[env.episodes.table().cause[0]]
    assert cause in ("trunk", "tilt")


def test_leaning_past_70_degrees_is_a_fall(make_env, make_scenarios):
    env = make_env()
    begin(env, make_scenarios(env.cfg))
    qpos = env.backend._batch.bind("qpos")
    for world, degrees in enumerate((0.0, 60.0, 80.0, 180.0)):
        half = np.radians(degrees) / 2.0
        qpos[world, 2:7] = (2.0, np.cos(half), np.sin(half), 0.0, 0.0)
    _, _, done, _ = env.step(ZERO)
    assert done.tolist() == [False, False, True, True]
    assert {FALL_CAUSES[c] for c in env.episodes.table().cause} == {"tilt"}


def test_standing_robot_times_out_and_its_record_is_right(make_env, make_scenarios):
    env = make_env(episode_s=0.4)
    scenarios = make_scenarios(env.cfg)
    begin(env, scenarios)
    total, errors = torch.zeros(4), torch.zeros(4)
    for step in range(20):
        command = env.command
        read = {}
        reset = env.backend.reset

        def spy(mask, rows, reset=reset, read=read):
            pose = torch.zeros(12)
            motion = observe_motion(env.backend.state, pose, FLAT)
            read["velocity"] = motion.linear_velocity
            reset(mask, rows)

        env.backend.reset = spy
        _, reward, done, extras = env.step(ZERO)
        env.backend.reset = reset
        total += reward
        errors += (command[:, :2] - read["velocity"][:, :2]).norm(dim=1)
        assert done.all() == (step == 19)
        assert extras["time_outs"].all() == (step == 19)
    table = env.episodes.table()
    assert table.length.tolist() == [20] * 4
    assert table.start.tolist() == [0] * 4
    assert table.row.tolist() == [0, 1, 2, 3]
    assert [FALL_CAUSES[c] for c in table.cause] == ["none"] * 4
    np.testing.assert_allclose(table.returns, total, rtol=1e-5)
    np.testing.assert_allclose(table.tracking_error, errors / 20, rtol=1e-5)


def test_nothing_of_the_last_episode_is_left_after_a_reset(make_env, make_scenarios):
    env = make_env(episode_s=0.1)
    begin(env, make_scenarios(env.cfg))
    observations, _, done, _ = [env.step(torch.randn(4, 12)) for _ in range(5)][-1]
    assert done.all()
    assert (observations["actor"][:, 33:] == 0.0).all()  # Last action.
    assert (env.episode_length_buf == 0).all()
    state = env.backend.state
    assert (state.foot_force == 0.0).all() and (state.torque == 0.0).all()
    _, reward, _, _ = env.step(ZERO)
    assert torch.isfinite(reward).all()


def test_acceleration_is_the_change_of_velocity_over_a_step(
    make_env, make_scenarios, monkeypatch
):
    seen = []

    def note(step, *rest):
        seen.append(step.joint_acceleration.clone())
        return total_reward(step, *rest)

    monkeypatch.setattr("horizon_rl.task.env.total_reward", note)
    env = make_env()
    begin(env, make_scenarios(env.cfg))
    for _ in range(2):
        before = env.backend.state.joint_velocity.clone()
        env.step(torch.ones(4, 12))
        change = env.backend.state.joint_velocity - before
        torch.testing.assert_close(seen[-1], change / 0.02)


def test_scenario_that_runs_again_repeats_itself_to_the_bit(make_env, make_scenarios):
    env = make_env(num_envs=16, episode_s=0.2)
    env.begin(make_scenarios(env.cfg, m=1), seed=0)
    actions = 3.0 * torch.randn((10, 16, 12), generator=torch.manual_seed(0))
    first, second = ([env.step(a)[1] for a in actions] for _ in range(2))
    assert len(env.episodes.table()) == 32
    assert torch.equal(torch.stack(first), torch.stack(second))


def test_start_of_later_episodes_counts_from_begin(make_env, make_scenarios):
    env = make_env(episode_s=0.1)
    begin(env, make_scenarios(env.cfg))
    for _ in range(15):
        env.step(ZERO)
    assert sorted(env.episodes.table().start.tolist()) == [0] * 4 + [5] * 4 + [10] * 4


def test_episode_set_to_begin_in_mid_episode_has_a_negative_start(
    make_env, make_scenarios
):
    env = make_env(episode_s=0.2)
    begin(env, make_scenarios(env.cfg))
    env.episode_length_buf = torch.tensor([0, 2, 4, 6])
    for _ in range(10):
        env.step(ZERO)
    starts = env.episodes.table().start
    assert sorted(starts.tolist()) == [-6, -4, -2, 0]
    assert env.episodes.recent(9)[:2].tolist() == [1, 10]


def test_broken_world_is_reset_counted_and_not_seen_by_the_learner(
    make_env, make_scenarios
):
    broken, whole = make_env(), make_env()
    for env in (broken, whole):
        begin(env, make_scenarios(env.cfg))
    broken.backend._batch.bind("qvel")[2] = np.nan
    seen = broken.step(ZERO)
    expected = whole.step(ZERO)
    others = [0, 1, 3]
    for name in ("actor", "critic"):
        assert torch.isfinite(seen[0][name]).all()
        torch.testing.assert_close(seen[0][name][others], expected[0][name][others])
    assert seen[1][2] == 0.0 and seen[2].tolist() == [False, False, True, False]
    torch.testing.assert_close(seen[1][others], expected[1][others])
    episode = broken.episodes.table()
    assert FALL_CAUSES[episode.cause[0]] == "unhealthy"
    # A robot that stands still at the fastest command would do as badly.
    assert episode.tracking_error[0] == np.float32(np.sqrt(2.0))
    assert episode.yaw_error[0] == 1.0
    assert broken.backend.counters.unhealthy == 1
    for _ in range(10):
        observations, reward, _, _ = broken.step(ZERO)
        assert torch.isfinite(observations["actor"]).all()
        assert torch.isfinite(reward).all()


def test_episode_whose_physics_broke_late_is_no_success():
    lasted, tracked = np.full(3, 1000), np.full(3, 0.1)
    zero = np.zeros(3)
    cause = np.array([FALL_CAUSES.index(c) for c in ("none", "unhealthy", "trunk")])
    table = EpisodeTable(zero, lasted, tracked, tracked, zero, cause, zero)
    assert succeeded(table, 1000).tolist() == [True, False, True]


def test_same_seed_gives_the_same_trajectories(make_env, make_scenarios):
    def run():
        env = make_env(noise=NoiseCfg(), episode_s=0.3)
        env.begin(make_scenarios(env.cfg, levels={"mass": 1.0}), seed=7)
        generator = torch.Generator().manual_seed(0)
        history = []
        for _ in range(40):
            action = torch.randn((4, 12), generator=generator)
            observations, reward, *_ = env.step(action)
            history.append(torch.cat((observations["actor"], reward[:, None]), dim=1))
        return torch.stack(history)

    assert torch.equal(run(), run())


def test_another_seed_takes_other_rows(make_env, make_scenarios):
    env = make_env(num_envs=16, episode_s=0.1)
    scenarios = make_scenarios(env.cfg, m=64)
    taken = []
    for seed in (0, 1):
        env.begin(scenarios, seed)
        for _ in range(10):
            env.step(torch.zeros((16, 12)))
        taken.append(env.episodes.table().row.tolist())
    (first, later), (other, _) = ((rows[:16], rows[16:]) for rows in taken)
    assert len(taken[0]) == 32 and first != later and first != other


def test_command_given_by_hand_lasts_until_the_episode_ends(make_env, make_scenarios):
    env = make_env(episode_s=0.2, command=CommandCfg(hold_s=0.1))
    scenarios = make_scenarios(env.cfg, m=4, levels={"disturbance": 1.0})
    scenarios = dataclasses.replace(
        scenarios, push_steps=np.full_like(scenarios.push_steps, 3)
    )
    begin(env, scenarios)
    by_hand = torch.arange(12.0).reshape(4, 3)
    env.drive(by_hand)
    torch.testing.assert_close(env.get_observations()["actor"][:, 6:9], by_hand)
    for _ in range(9):
        observations, *_ = env.step(ZERO)
        torch.testing.assert_close(observations["actor"][:, 6:9], by_hand)
        assert not env.push_velocity.any()
    observations, _, done, _ = env.step(ZERO)
    assert done.all() and not (observations["actor"][:, 6:9] == by_hand).any()


def test_endless_episodes_outlast_falls_and_their_time(go2, make_scenarios):
    cfg = TaskCfg(episode_s=0.2)
    env = VelocityEnv(CpuBackend(go2, 4), cfg, endless=True)
    limp = {"actuation__effort_limit": 0.0, "disturbance__push_velocity": 0.0}
    begin(env, make_scenarios(cfg, **limp))
    dones = [env.step(ZERO)[2].any() for _ in range(60)]
    assert not any(dones) and (env.episode_length_buf == 60).all()
    causes = env.find_falls(env.motion)
    assert (causes > 0).all() and len(env.episodes.table()) == 0


def test_exchanged_scenarios_go_on_with_the_episodes(make_env, make_scenarios):
    env, undisturbed = make_env(), make_env()
    scenarios = make_scenarios(env.cfg, m=4)
    heavier = make_scenarios(env.cfg, m=4, mass__scale=2.0)
    for each in (env, undisturbed):
        begin(each, scenarios)
        for _ in range(20):
            each.step(torch.ones((4, 12)))
    batch = env.backend._batch
    qpos, qvel = batch.bind("qpos").copy(), batch.bind("qvel").copy()
    seen = env.exchange(
        dataclasses.replace(
            heavier,
            pool=dataclasses.replace(heavier.pool, start_qpos=qpos, start_qvel=qvel),
            commands=scenarios.commands,
        )
    )
    torch.testing.assert_close(
        seen["actor"], undisturbed.get_observations()["actor"], atol=1e-6, rtol=1e-6
    )
    before = undisturbed.get_observations()["privileged"]
    assert not torch.equal(seen["privileged"], before)
    for each in (env, undisturbed):
        each.step(torch.ones((4, 12)))
    assert (env.episode_length_buf == 21).all()
    height, before = (each.motion.height for each in (env, undisturbed))
    assert not torch.equal(height, before)


@pytest.mark.parametrize("changes", [{"episode_s": 0.0}, {"episode_s": -1.0}])
def test_impossible_task_is_refused(changes):
    with pytest.raises(InputError):
        TaskCfg(**changes)


def test_rsl_rl_trains_on_it(make_env, make_scenarios):
    from rsl_rl.runners import OnPolicyRunner

    env = make_env(num_envs=8)
    env.begin(make_scenarios(env.cfg, m=32), seed=0)
    mlp = {
        "class_name": "MLPModel",
        "hidden_dims": [32],
        "activation": "elu",
        "obs_normalization": True,
    }
    gaussian = {"class_name": "GaussianDistribution", "init_std": 1.0}
    runner = OnPolicyRunner(
        env,  # pyright: ignore[reportArgumentType]
        {
            "num_steps_per_env": 8,
            "save_interval": 1000,
            "obs_groups": {"actor": ["actor"], "critic": ["critic", "privileged"]},
            "actor": {**mlp, "distribution_cfg": gaussian},
            "critic": mlp,
            "algorithm": {
                "class_name": "PPO",
                "num_learning_epochs": 1,
                "num_mini_batches": 2,
            },
        },
        log_dir=None,
        device="cpu",
    )
    before = [p.clone() for p in runner.alg.actor.parameters()]
    runner.learn(2, init_at_random_ep_len=True)
    after = list(runner.alg.actor.parameters())
    changed = [not torch.equal(a, b) for a, b in zip(before, after, strict=True)]
    assert any(changed)
    assert all(torch.isfinite(p).all() for p in after)


def test_weights_reach_the_reward(make_env, make_scenarios):
    def reward(weight):
        env = make_env(rewards=RewardCfg(linear_velocity=weight))
        begin(env, make_scenarios(env.cfg))
        return env.step(torch.zeros(4, 12))[1]

    once, twice, thrice = map(reward, (1.0, 2.0, 3.0))
    assert (twice > once).all()
    torch.testing.assert_close(thrice - twice, twice - once)
