"""Latency: when an action reaches the joints, and what else stays as it was."""

import numpy as np
import pytest
import torch
from worlds_of_signals import make_pool, record_targets

from horizon_rl.physics import CONTROL_DT, CpuBackend
from horizon_rl.task import TaskCfg, VelocityEnv, draw_scenarios
from horizon_rl.task.signals import ActionDelay


def begin(go2, values, cfg=None, n=4):
    cfg = cfg or TaskCfg()
    pool = make_pool(go2, n, values)
    env = VelocityEnv(CpuBackend(go2, n), cfg)
    scenarios = draw_scenarios(pool, cfg, np.random.default_rng(0))
    env.begin(scenarios, 0, rows=torch.arange(n))
    return env, scenarios


def told(env, actions):
    """Step through actions [steps, 12], the same for all; return the targets."""
    targets = record_targets(env)
    for action in actions:
        env.step(action.expand(env.num_envs, 12))
    return torch.stack(targets)


def test_a_step_arrives_whole_control_steps_later(go2):
    delays = np.array([0.0, 0.02, 0.04, 0.06])
    env, scenarios = begin(go2, {"latency.action_delay": delays})
    targets = told(env, torch.ones(6, 12))
    pose = torch.from_numpy(scenarios.pool.default_pose).float()
    reached = (targets - pose)[:, :, 0] / env.cfg.action_scale
    for world in range(4):
        expected = [0.0] * world + [1.0] * (6 - world)
        torch.testing.assert_close(
            reached[:, world], torch.tensor(expected), atol=1e-5, rtol=0.0
        )


def test_a_delay_within_a_step_comes_in_its_share():
    delay = ActionDelay(torch.tensor([0.005, 0.03]), 0.03, 1)
    seen = torch.cat([delay.arrive(torch.ones(2, 1)) for _ in range(4)], dim=1)
    expected = torch.tensor([[0.75, 1.0, 1.0, 1.0], [0.0, 0.5, 1.0, 1.0]])
    torch.testing.assert_close(seen, expected)
    # What is missing in all adds up to the delay.
    lag = (1.0 - seen).sum(dim=1) * CONTROL_DT
    torch.testing.assert_close(lag, torch.tensor([0.005, 0.03]))


def test_the_joints_themselves_move_later(go2):
    env, _ = begin(go2, {"latency.action_delay": np.array([0.0, 0.02, 0.04, 0.06])})
    moved = []
    for _ in range(8):
        before = env.backend.state.joint_position.clone()
        env.step(torch.full((4, 12), 3.0))
        moved.append((env.backend.state.joint_position - before).abs().amax(dim=1))
    first = (torch.stack(moved) > 0.1).float().argmax(dim=0)
    assert first.tolist() == [0, 1, 2, 3], f"steps at which joints set off: {moved}"


def test_of_the_last_episode_no_action_arrives_in_the_next(go2):
    cfg = TaskCfg(episode_s=0.1)
    env, scenarios = begin(go2, {"latency.action_delay": 0.06}, cfg)
    targets = told(env, torch.ones(7, 12))
    pose = torch.from_numpy(scenarios.pool.default_pose).float()
    offset = (targets - pose).abs().amax(dim=(1, 2))
    # Five steps an episode: three of waiting, two that get through; then anew.
    assert (offset > 1e-4).tolist() == [False] * 3 + [True] * 2 + [False] * 2


def test_the_robot_remembers_what_it_sent_not_what_arrived(go2):
    env, _ = begin(go2, {"latency.action_delay": 0.06})
    action = torch.linspace(-1.0, 1.0, 12).expand(4, 12)
    observations, *_ = env.step(action)
    torch.testing.assert_close(observations["actor"][:, 33:45], action)


def test_without_delay_worlds_are_those_of_the_paper_to_the_bit(go2):
    runs = []
    for extended in (False, True):
        pool = make_pool(go2, 4, {}, extended=extended)
        cfg = TaskCfg()
        env = VelocityEnv(CpuBackend(go2, 4), cfg)
        scenarios = draw_scenarios(pool, cfg, np.random.default_rng(0))
        seen = [env.begin(scenarios, 0, rows=torch.arange(4))]
        actions = torch.Generator().manual_seed(0)
        for _ in range(60):
            observations, reward, *_ = env.step(torch.randn((4, 12), generator=actions))
            seen += [observations, reward]
        runs.append(seen)
    for one, other in zip(*runs, strict=True):
        if isinstance(one, torch.Tensor):
            assert torch.equal(one, other)
        else:
            assert torch.equal(one["actor"], other["actor"])
            assert torch.equal(one["critic"], other["critic"])


@pytest.mark.parametrize("longest", [0.0, 0.0199999, 0.02, 0.06, 1.0])
def test_every_delay_up_to_the_longest_is_remembered(longest):
    delay = ActionDelay(torch.tensor([longest]), longest, 1)
    steps = round(longest / CONTROL_DT) + 2
    seen = [float(delay.arrive(torch.ones(1, 1))) for _ in range(steps)]
    assert seen[-1] == pytest.approx(1.0)
    assert sum(1.0 - x for x in seen) * CONTROL_DT == pytest.approx(longest, abs=1e-6)
