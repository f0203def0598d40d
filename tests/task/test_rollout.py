"""Rollouts: one episode per scenario, whatever the number of worlds."""

import numpy as np
import pytest
import torch

from horizon_rl.policies.load import Stand
from horizon_rl.task import EpisodeTable, rollout
from horizon_rl.task.episodes import UNHEALTHY, EpisodeRecorder, succeeded


def columns(table: EpisodeTable):
    return [np.asarray(column) for column in vars(table).values()]


def test_result_does_not_depend_on_how_many_worlds_share_the_work(
    make_env, make_scenarios
):
    tables = []
    for num_envs in (3, 7, 10):
        env = make_env(num_envs=num_envs, episode_s=0.3)
        scenarios = make_scenarios(env.cfg, m=10, levels={"mass": 0.5, "reset": 1.0})
        tables.append(rollout(env, Stand(), scenarios))
    assert len(tables[0]) == 10
    assert tables[0].row.tolist() == list(range(10))
    for table in tables[1:]:
        for a, b in zip(columns(tables[0]), columns(table), strict=True):
            np.testing.assert_array_equal(a, b)


def test_only_the_first_episode_counts(make_env, make_scenarios):
    # Without motors every robot falls, over and over; its first fall is on record.
    env = make_env(num_envs=4, episode_s=2.0)
    scenarios = make_scenarios(env.cfg, m=4, actuation__effort_limit=0.0)
    table = rollout(env, Stand(), scenarios)
    assert (table.start == 0).all() and (table.cause > 0).all()
    assert table.length.max() < 60
    assert table.row.tolist() == [0, 1, 2, 3]


def test_policy_that_acts_nan_tracks_nothing_and_never_succeeds(
    make_env, make_scenarios
):
    class Broken(Stand):
        def act(self, observations):
            return super().act(observations) * torch.nan

    env = make_env(num_envs=4, episode_s=0.3)
    table = rollout(env, Broken(), make_scenarios(env.cfg, m=4))
    assert (table.cause == UNHEALTHY).all() and not succeeded(table, 1).any()
    assert (table.tracking_error > 1.0).all() and (table.yaw_error >= 1.0).all()


def test_policy_is_told_of_every_new_episode(make_env, make_scenarios):
    class Counting(Stand):
        def __init__(self):
            self.resets, self.acts = 0, 0

        def reset(self, mask):
            self.resets += int(mask.sum())

        def act(self, observations):
            self.acts += 1
            assert set(observations.keys()) == {"actor", "critic", "privileged"}
            return super().act(observations)

    env = make_env(num_envs=2, episode_s=0.1)
    policy = Counting()
    rollout(env, policy, make_scenarios(env.cfg, m=4))
    assert policy.resets == 2 * (2 + 2)  # Two passes: at the start, at the end.
    assert policy.acts == 10


def test_standing_robot_survives_at_baseline(make_env, make_scenarios):
    env = make_env(num_envs=16, episode_s=3.0)
    table = rollout(env, Stand(), make_scenarios(env.cfg, m=16))
    assert (table.length == 150).all(), table.length
    speed = np.linalg.norm(make_scenarios(env.cfg, m=16).commands[:, 0, :2], axis=1)
    np.testing.assert_allclose(table.tracking_error, speed, atol=0.05)


def test_recorder_keeps_the_last_episodes_in_order():
    recorder = EpisodeRecorder(num_worlds=2, capacity=3, device=torch.device("cpu"))
    no, both = torch.tensor([True, False]), torch.tensor([True, True])
    zero = torch.zeros(2)
    for step, done in enumerate((no, both, no, both), start=1):
        recorder.add(zero + step, zero, zero + 1.0)
        length = torch.full((2,), step)
        recorder.finish(done, torch.tensor(step), length, zero, torch.arange(2))
    # Six episodes in all: world 0, 0, 1, 0, 0, 1. The last three are kept.
    table = recorder.table()
    assert table.row.tolist() == [0, 0, 1]
    assert table.length.tolist() == [3, 4, 4]
    # Errors of an episode add up from its start: 3, 4 and, of world 1, 3 + 4.
    errors = table.tracking_error.tolist()
    assert recorder.recent(2).tolist() == pytest.approx([2, 4.0, sum(errors[1:]) / 2])
    assert recorder.recent(9).tolist() == pytest.approx(
        [3, 11.0 / 3.0, sum(errors) / 3]
    )


def test_before_an_episode_has_ended_there_is_none_to_show():
    recorder = EpisodeRecorder(num_worlds=2, capacity=3, device=torch.device("cpu"))
    assert recorder.recent(100).tolist() == [0.0, 0.0, 0.0]
