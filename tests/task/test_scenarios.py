"""Commands and pushes are drawn as the task says."""

import numpy as np

from horizon_rl.policies.load import Stand
from horizon_rl.task import CommandCfg, PushCfg, TaskCfg, join_scenarios, rollout
from horizon_rl.task.scenarios import place_commands, place_pushes


def test_a_tenth_of_the_commands_is_to_stand_and_the_rest_fill_their_ranges():
    commands = place_commands(
        np.random.default_rng(0).random((20_000, 2, 4)), CommandCfg()
    )
    standing = (commands == 0.0).all(axis=-1)
    assert abs(standing.mean() - 0.1) < 0.01
    moving = commands[~standing]
    assert np.abs(moving).max() <= 1.0
    np.testing.assert_allclose(moving.mean(axis=0), 0.0, atol=0.02)
    np.testing.assert_allclose(moving.std(axis=0), 1.0 / np.sqrt(3.0), atol=0.01)


def test_pushes_come_every_ten_to_fifteen_seconds():
    steps = place_pushes(np.random.default_rng(0).random((5000, 3)), PushCfg())
    intervals = np.diff(steps, axis=1)
    assert intervals.min() >= 499 and intervals.max() <= 751
    assert 500 <= np.median(intervals) <= 750


def test_episode_starts_at_a_random_moment_of_the_pushes():
    steps = place_pushes(np.random.default_rng(0).random((50_000, 3)), PushCfg())
    # One push in 12.5 s, whichever second of the episode it is.
    counts, _ = np.histogram(steps, bins=10, range=(0, 1000))
    np.testing.assert_allclose(counts / len(steps), 2.0 / 12.5, atol=0.01)
    # By hand: 0.8 of first pushes within the shortest interval, the second in 20 s
    # whenever the first leaves it room, and no third.
    shares = np.mean(steps < [500, 1000, 1000], axis=0)
    np.testing.assert_allclose(shares, (0.8, 0.6, 0.0), atol=0.01)
    assert steps[:, 0].min() <= 1 and 740 <= steps[:, 0].max() <= 750


def test_pushes_at_equal_intervals_begin_anywhere_in_the_first():
    cfg = PushCfg(min_interval_s=2.0, max_interval_s=2.0)
    steps = place_pushes(np.array([[0.0, 0.3], [0.5, 0.9]]), cfg)
    assert steps.tolist() == [[0, 100], [50, 150]]


def test_episode_of_20_s_has_two_commands():
    cfg = TaskCfg()
    assert (cfg.max_steps, cfg.hold_steps, cfg.num_commands) == (1000, 500, 2)


def test_same_seed_gives_the_same_scenarios(make_scenarios):
    cfg = TaskCfg()
    first, second = make_scenarios(cfg, seed=3), make_scenarios(cfg, seed=3)
    np.testing.assert_array_equal(first.commands, second.commands)
    np.testing.assert_array_equal(first.push_steps, second.push_steps)
    np.testing.assert_array_equal(first.pool.start_qpos, second.pool.start_qpos)
    assert (make_scenarios(cfg, seed=4).commands != first.commands).any()


def test_joined_scenarios_are_the_parts_one_after_the_other(make_scenarios):
    cfg = TaskCfg()
    parts = [make_scenarios(cfg, m, seed=m) for m in (3, 1, 4)]
    joined = join_scenarios(parts)
    assert len(joined) == 8
    first = 0
    for part in parts:
        rows = slice(first, first + len(part))
        np.testing.assert_array_equal(joined.commands[rows], part.commands)
        np.testing.assert_array_equal(joined.push_steps[rows], part.push_steps)
        np.testing.assert_array_equal(
            joined.pool.start_qpos[rows], part.pool.start_qpos
        )
        first += len(part)


def test_scenario_goes_the_same_way_whatever_runs_beside_it(make_env, make_scenarios):
    env = make_env(8, episode_s=0.2)
    first, second = (make_scenarios(env.cfg, 4, seed=seed) for seed in (1, 2))
    alone = rollout(env, Stand(), second)
    beside = rollout(env, Stand(), join_scenarios([first, second]))
    np.testing.assert_array_equal(beside.returns[4:], alone.returns)
    assert (beside.returns[:4] != alone.returns).any()
