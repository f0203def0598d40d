"""Sensing: noise, biases and lost readings, as much of each as the world says."""

import numpy as np
import pytest
import torch
from worlds_of_signals import make_pool, record_targets

from horizon_rl.domains import shipped_catalogue
from horizon_rl.physics import CpuBackend, privileged_numbers
from horizon_rl.task import NUM_ACTOR, NoiseCfg, TaskCfg, VelocityEnv, draw_scenarios
from horizon_rl.task.signals import Sensors

QUIET = NoiseCfg(angular_velocity=0, gravity=0, joint_position=0, joint_velocity=0)


def begin(go2, values, n=4, noise=QUIET):
    cfg = TaskCfg(noise=noise)
    env = VelocityEnv(CpuBackend(go2, n), cfg)
    pool = make_pool(go2, n, values)
    scenarios = draw_scenarios(pool, cfg, np.random.default_rng(0))
    return env, env.begin(scenarios, 0, rows=torch.arange(n)), pool


def test_noise_has_the_spread_that_is_asked_for(go2):
    n = 600
    scale = np.repeat([0.5, 1.0, 3.0], n // 3)
    _, seen, _ = begin(go2, {"sensing.noise_scale": scale}, n, NoiseCfg())
    error = (seen["actor"] - seen["critic"][:, :45]).reshape(3, n // 3, 45)
    limits = torch.tensor([0.2] * 3 + [0.05] * 3 + [0.0] * 3 + [0.01] * 12 + [1.5] * 12)
    for part, factor in zip(error, (0.5, 1.0, 3.0), strict=True):
        # A uniform number in +- a has the standard deviation a / sqrt(3).
        expected = factor * limits / 3**0.5
        spread = part[:, :33].std(dim=0)
        torch.testing.assert_close(spread, expected, rtol=0.15, atol=1e-6)
        assert (part[:, :33].abs() <= factor * limits + 1e-5).all()
        assert part[:, 33:].abs().max() < 1e-6


def test_biases_shift_the_readings_of_their_sensor_alone(go2):
    gyro, gravity = [0.1, -0.2, 0.05], [0.03, 0.0, -0.1]
    values = {"sensing.gyro_bias": gyro, "sensing.gravity_bias": gravity}
    env, seen, _ = begin(go2, values)
    for _ in range(3):
        error = seen["actor"] - seen["critic"][:, :45]
        expected = torch.tensor([*gyro, *gravity, *[0.0] * 39]).expand(4, 45)
        torch.testing.assert_close(error, expected, atol=1e-5, rtol=0.0)
        seen, *_ = env.step(torch.zeros(4, 12))


def test_the_critic_is_told_each_world_s_values_on_a_fixed_scale(go2):
    values = {
        "latency.action_delay": [0.0, 0.03, 0.045, 0.06],
        "sensing.lost_readings": [0.3, 0.15, 0.0, 0.075],
        "drivetrain.friction": np.linspace(0.0, 2.0, 48).reshape(4, 12),
    }
    _, seen, _ = begin(go2, values)
    names = list(privileged_numbers(shipped_catalogue("extended")))
    told = dict(zip(names, seen["privileged"].T.tolist(), strict=True))
    assert told["latency.action_delay", 0] == pytest.approx([-1.0, 0.0, 0.5, 1.0])
    assert told["sensing.lost_readings", 0] == pytest.approx([1.0, 0.0, -1.0, -0.5])
    friction = np.array([told["drivetrain.friction", j] for j in range(12)]).T
    assert friction.ravel() == pytest.approx(np.linspace(-1.0, 1.0, 48), abs=1e-6)
    # The policy's own inputs are as many as without, and hold none of it.
    assert seen["actor"].shape == (4, 45)


def test_an_encoder_bias_shifts_reading_and_motor_alike(go2):
    bias = np.linspace(-0.1, 0.1, 12)
    values = {"sensing.encoder_bias": np.stack([0.0 * bias, bias])}
    env, seen, pool = begin(go2, values, n=2)
    start = env.backend.state.joint_position
    # The robot stands where it stood: only what it reads has moved.
    torch.testing.assert_close(start[0], start[1])
    read = seen["actor"][1, 9:21] - seen["actor"][0, 9:21]
    torch.testing.assert_close(read, torch.from_numpy(bias).float(), atol=1e-6, rtol=0)
    # Told to keep its default pose, a motor goes where its encoder says so.
    targets = record_targets(env)
    env.step(torch.zeros(2, 12))
    went = targets[0][1] - targets[0][0]
    torch.testing.assert_close(went, -torch.from_numpy(bias).float(), atol=1e-6, rtol=0)
    np.testing.assert_allclose(pool.default_pose[0], go2.default_pose_rad)


def test_a_lost_reading_is_the_last_one_again(go2):
    shares = np.repeat([0.0, 0.3, 1.0], 100)
    env, seen, _ = begin(go2, {"sensing.lost_readings": shares}, n=300)
    repeated = []
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        before, action = seen, torch.randn((300, 12), generator=generator) * 0.1
        seen, _, done, _ = env.step(action)
        same = (seen["actor"][:, 21:33] == before["actor"][:, 21:33]).all(dim=1)
        repeated.append(same.float().reshape(3, 100).mean(dim=1))
        # What the computer knows by itself is never old.
        kept = ~done
        assert torch.equal(seen["actor"][kept, 33:45], action[kept])
        # The critic is told the truth.
        assert not torch.equal(
            seen["critic"][200:, 21:33], before["critic"][200:, 21:33]
        )
    never, some, always = torch.stack(repeated).mean(dim=0).tolist()
    # 2000 chances of 0.3: the share has a standard deviation of 0.01.
    assert never == 0.0 and always == 1.0 and abs(some - 0.3) < 0.04, some


def test_the_first_reading_of_an_episode_is_its_own(go2):
    env, seen, _ = begin(go2, {"sensing.lost_readings": 1.0})
    torch.testing.assert_close(seen["actor"], seen["critic"][:, :45])


def test_noise_of_the_other_channels_stays_as_it_was():
    moment = torch.tensor(7), torch.arange(5), torch.full((5,), 3)
    truth, cpu = torch.rand(5, NUM_ACTOR), torch.device("cpu")
    plain, late, faulty = (
        Sensors(NoiseCfg(), dict.fromkeys(names, torch.zeros(5)), 5, cpu)
        for names in ((), ("action_delay",), ("lost_readings",))
    )
    expected = plain.read(truth, *moment)
    assert not torch.equal(expected, truth)
    assert torch.equal(late.read(truth, *moment), expected)
    assert torch.equal(faulty.read(truth, *moment), expected)
