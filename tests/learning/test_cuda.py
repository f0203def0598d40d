"""On a GPU: graphs do what Python does step by step, and nothing waits.

Physics is a puppet here, since the engine's own is not repeatable on a GPU. Every test
runs on the CPU too, where nothing is recorded: it keeps the tests themselves honest.
"""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch
from tensordict import TensorDict
from toys import CRITIC, PPO, SMALL, SMALL_MLP

pytest.importorskip("mjbatch")

from horizon_rl.domains import AtLevels, paper_catalogue
from horizon_rl.learning import LearnerCfg, TransformerCfg, build_ppo, state_tensors
from horizon_rl.physics import sample_pool
from horizon_rl.physics.backend import allocate_state
from horizon_rl.robots import build_robot, load_preset
from horizon_rl.support.graphs import WARM_UPS
from horizon_rl.task import NUM_ACTIONS, TaskCfg, VelocityEnv, draw_scenarios
from horizon_rl.training.scores import RowScores

GPU = pytest.param(
    "cuda:0",
    marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
)
DEVICES = pytest.mark.parametrize("device", ["cpu", GPU])
ROLLOUTS = WARM_UPS + 3
"""The last two are replayed."""


class Puppet:
    """A backend whose joints jump to their targets and whose trunk waves about."""

    counters = None

    def __init__(self, robot, num_worlds: int, device: str):
        self.robot, self.num_worlds = robot, num_worlds
        self.device = torch.device(device)
        self.state = allocate_state(num_worlds, self.device)
        self.time = torch.arange(num_worlds, device=device).float()

    def load(self, pool):
        pass

    def reset(self, mask, rows):
        self.time.copy_(torch.where(mask, rows.float(), self.time))
        self.state.joint_position.masked_fill_(mask.unsqueeze(1), 0.0)
        self._show()

    def push(self, velocity):
        self.time.add_(velocity.sum(dim=1))

    def step(self, targets):
        self.time.add_(0.37)
        self.state.joint_velocity.copy_((targets - self.state.joint_position) / 0.02)
        self.state.joint_position.copy_(targets)
        self._show()

    def snapshot(self):
        raise NotImplementedError

    restore = snapshot

    def _show(self):
        s = self.state
        for number, tensor in enumerate((s.linear_velocity, s.angular_velocity)):
            phase = torch.arange(3, device=self.device) + number
            tensor.copy_(torch.sin(self.time.unsqueeze(1) * (1.0 + phase)))
        s.root_quat[:, 0] = torch.cos(0.7 * self.time)
        s.root_quat[:, 1] = torch.sin(0.7 * self.time)
        s.foot_force.copy_(20.0 * s.angular_velocity[:, :1].expand(-1, 4))
        s.healthy.copy_(s.linear_velocity[:, 0] > -0.99)


def make_env(device: str, num_envs: int = 32):
    rng, catalogue = np.random.default_rng(0), paper_catalogue()
    go2, cfg = build_robot(load_preset("go2")), TaskCfg(episode_s=0.5)
    pool = sample_pool([go2], catalogue, AtLevels({"com": 1.0}), 64, rng)
    env = VelocityEnv(Puppet(go2, num_envs, device), cfg)  # pyright: ignore[reportArgumentType]
    return env, draw_scenarios(pool, cfg, rng)


def make_learner(actor, obs: TensorDict, device: str):
    torch.manual_seed(0)
    ppo = replace(PPO, num_steps=12, num_epochs=2)
    cfg = LearnerCfg(actor=actor, critic=CRITIC, ppo=ppo)
    return build_ppo(obs, NUM_ACTIONS, len(obs), cfg, device)


def with_and_without_graphs(monkeypatch, work):
    results = []
    for switch in "10":
        monkeypatch.setenv("HORIZON_GRAPHS", switch)
        torch.manual_seed(3)
        results.append(work())
    return results


@DEVICES
@pytest.mark.parametrize(
    "actor",
    [
        SMALL,
        replace(SMALL, num_layers=2, window=7),
        TransformerCfg(),
        replace(SMALL, symmetric=True),
        SMALL_MLP,
    ],
)
def test_recorded_acting_equals_acting_over_60_steps_with_resets(
    device, actor, monkeypatch
):
    widths = {"actor": 45, "critic": 53, "privileged": 30}
    generator = torch.Generator().manual_seed(1)

    def random_obs():
        groups = {k: torch.randn(16, w, generator=generator) for k, w in widths.items()}
        return TensorDict(groups, [16]).to(device)

    steps = [random_obs() for _ in range(12 * ROLLOUTS)]
    dones = [torch.rand(16, generator=generator) < 0.1 for _ in steps]

    def act():
        learner = make_learner(actor, steps[0], device)
        seen = []
        with torch.no_grad():
            for number, (obs, done) in enumerate(zip(steps, dones, strict=True)):
                learner.act(obs)
                now = number % 12
                storage = learner.storage
                mean, _ = storage.distribution_params
                seen.append(torch.cat((mean[now], storage.values[now]), dim=1).clone())
                nothing = torch.zeros(16, device=device)
                learner.process_env_step(obs, nothing, done.to(device), {})
                if now == 11:
                    storage.clear()
        return torch.stack(seen)

    replayed, plain = with_and_without_graphs(monkeypatch, act)
    torch.testing.assert_close(replayed, plain, rtol=1e-5, atol=1e-5)
    assert plain.std() > 1e-3


@DEVICES
def test_recorded_environment_equals_the_environment(device, monkeypatch):
    def run():
        env, scenarios = make_env(device)
        generator = torch.Generator().manual_seed(5)
        history = []
        for seed in range(2):  # Recordings must not outlive a `begin`.
            env.begin(scenarios, seed)
            for _ in range(60):
                actions = torch.randn(32, NUM_ACTIONS, generator=generator).to(device)
                obs, reward, done, extras = env.step(actions)
                flags = torch.stack((reward, done, extras["time_outs"]), dim=1)
                groups = [obs[name] for name in ("actor", "critic", "privileged")]
                history.append(torch.cat((*groups, flags), dim=1))
        return torch.stack(history), env.episodes.table()

    (replayed, records), (plain, plain_records) = with_and_without_graphs(
        monkeypatch, run
    )
    torch.testing.assert_close(replayed, plain, rtol=1e-5, atol=1e-5)
    assert len(records) == len(plain_records) > 64
    np.testing.assert_array_equal(records.row, plain_records.row)
    np.testing.assert_allclose(records.returns, plain_records.returns, rtol=1e-4)


@DEVICES
@pytest.mark.parametrize(
    "actor", [SMALL, SMALL_MLP, replace(SMALL_MLP, symmetric=True)]
)
def test_recorded_training_equals_training(device, actor, monkeypatch):
    def train():
        env, scenarios = make_env(device)
        obs = env.begin(scenarios, 0)
        learner = make_learner(actor, obs, device)
        figures = []
        for _ in range(ROLLOUTS):
            obs = collect(learner, env, obs)
            figures.append(learner.update())
        return figures, state_tensors(learner)

    (figures, tensors), (plain_figures, plain) = with_and_without_graphs(
        monkeypatch, train
    )
    for found, expected in zip(figures, plain_figures, strict=True):
        assert abs(found["first_kl"]) < 1e-5
        assert found["kl"] == pytest.approx(expected["kl"], rel=0.05, abs=1e-5)
        assert found["std"] == pytest.approx(expected["std"], rel=1e-3)
    for name, value in plain.items():
        if "adam" not in name:
            torch.testing.assert_close(tensors[name], value, rtol=0.02, atol=2e-3)


@DEVICES
@pytest.mark.parametrize("scored", [False, True])
def test_collecting_never_waits_for_the_device(device, scored):
    env, scenarios = make_env(device)
    obs = env.begin(scenarios, 0)
    learner = make_learner(SMALL, obs, device)
    trains = np.arange(len(scenarios)) % 2.0
    scores = RowScores(trains, env.device) if scored else None
    for rollout in range(ROLLOUTS):
        # Recording itself does wait.
        last = rollout == ROLLOUTS - 1 and device != "cpu"
        with no_waiting() if last else nullcontext():
            obs = collect(learner, env, obs, scores)
        learner.update()
    if scores:
        assert scores.means().shape == (64,) and scores.means().max() > 0.0


def collect(learner, env, obs, scores: RowScores | None = None):
    with torch.no_grad():
        for _ in range(learner.cfg.num_steps):
            actions = learner.act(obs)
            noted = scores.note(env.rows) if scores else {}
            obs, reward, done, extras = env.step(actions)
            learner.process_env_step(obs, reward, done, extras | noted)
        learner.compute_returns(obs)
        if scores:
            scores.add(learner.value_losses())
    return obs


class no_waiting:
    """Make it an error to wait for the GPU."""

    def __enter__(self):
        torch.cuda.set_sync_debug_mode("error")

    def __exit__(self, *args):
        torch.cuda.set_sync_debug_mode("default")
