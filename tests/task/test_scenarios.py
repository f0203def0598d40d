"""Commands and pushes are drawn as the task says."""

import numpy as np

from horizon_rl.task import CommandCfg, PushCfg, TaskCfg
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
    steps = place_pushes(np.random.default_rng(0).random((5000, 2)), PushCfg())
    intervals = np.diff(steps, axis=1, prepend=0)
    assert intervals.min() >= 499 and intervals.max() <= 751
    assert 500 <= steps[:, 0].min() and steps[:, 0].max() <= 750


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
