"""The mjlab example against mjlab's own managers; skipped where mjlab is not installed.

mjlab pins another MuJoCo than this package, so it has an environment of its own:

    python -m venv mjlabenv
    mjlabenv/bin/pip install mjlab==1.6.0 pytest
    PYTHONPATH=src mjlabenv/bin/python -m pytest --noconftest -o addopts= tests/examples
"""
# pyright: reportMissingImports=false

import copy
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

mjlab = pytest.importorskip("mjlab")

import numpy as np  # noqa: E402
import torch  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import mjlab_curriculum as example  # noqa: E402

from horizon_rl.curriculum import CurriculumCfg, GateCfg, ProbeSet  # noqa: E402
from horizon_rl.curriculum.evidence import ProbedEpisodes  # noqa: E402
from horizon_rl.domains import AtLevels  # noqa: E402

N = 6
PASSES = GateCfg(min_length=0.0, max_error=1e9, error_margin=1e9, return_margin=1e9)


@pytest.fixture(scope="module")
def env():
    torch.manual_seed(0)
    cfg = example.env_cfg(N, episode_s=0.2)
    made = example.ManagerBasedRlEnv(cfg=cfg, device="cpu")
    return example.RslRlVecEnvWrapper(made)


@pytest.fixture
def term(env):
    return env.unwrapped.curriculum_manager.get_term_cfg(example.TERM).func


@pytest.fixture
def runner(env):
    cfg = example.unitree_go1_ppo_runner_cfg()
    agent = asdict(replace(cfg, num_steps_per_env=5, logger="tensorboard"))
    return example.MjlabOnPolicyRunner(env, agent, None, "cpu")


def field(env, name):
    """A model field of mjlab's simulation, per world."""
    return getattr(env.unwrapped.sim.model, name)


def drawn(env, term, levels):
    """Reset all worlds at `levels`; return trunk masses, offsets, sliding friction."""
    term.widen(levels, example.CATALOGUE.ranges(levels))
    env.seed(3)
    env.reset()
    robot = env.unwrapped.scene["robot"]
    trunk = robot.indexing.body_ids[robot.body_names.index("trunk")]
    foot = robot.indexing.geom_ids[robot.geom_names.index("FR_foot_collision")]
    return (
        field(env, "body_mass")[:, trunk].clone(),
        field(env, "body_ipos")[:, trunk].clone(),
        field(env, "geom_friction")[:, foot, 0].clone(),
    )


def test_levels_reach_the_physics_of_the_worlds(env, term):
    mass, com, friction = drawn(env, term, {})
    assert (mass / mass.mean() - 1.0).abs().max() < 0.12
    assert (com - com.mean(dim=0)).abs().max() < 0.007
    wide = drawn(env, term, {"mass": 1.0, "com": 1.0, "contact": 1.0})
    assert wide[0].max() / wide[0].min() > 2.0
    assert (wide[1] - com.mean(dim=0)).abs().max() > 0.1
    assert wide[2].min() < 0.4 or wide[2].max() > 1.5
    # Drawn from the compiled values each time: nothing adds up over resets.
    again = drawn(env, term, {})
    for before, after in zip((mass, com, friction), again, strict=True):
        torch.testing.assert_close(before, after)


def test_episodes_are_noted_with_start_length_and_error(env, term):
    drawn(env, term, {})
    term.begin()
    for _ in range(25):
        env.step(torch.zeros(N, env.num_actions))
    found = term.episodes()
    # 0.2 s are ten steps: two whole episodes of every world.
    assert found.length.tolist() == [10.0] * 2 * N
    assert found.start.tolist() == [0.0] * N + [10.0] * N
    assert (found.tracking_error > 0.0).all() and (found.tracking_error < 3.0).all()


def test_levels_are_logged_by_mjlab(env, term):
    drawn(env, term, {"mass": 0.5})
    assert env.unwrapped.extras["log"]["Curriculum/horizon/mass"] == 0.5


def test_a_run_commits_and_widens(env, runner):
    cfg = CurriculumCfg(gates=PASSES, max_phases=3, min_step=0.5)
    entries = example.train(env, runner, cfg, iterations=6)
    assert [e.decision.action for e in entries] == ["commit"] * 3
    assert entries[-1].proposal.levels["com"] == 0.5
    assert all(e.evidence.episodes > 0 for e in entries)
    assert entries[2].evidence.checkpoint_error is not None


def test_a_rollback_brings_back_weights_and_optimiser(env, runner, monkeypatch):
    # Error and return: of phase 0; then of phase 1, much worse in the checkpoint's ranges.
    values = iter([(0.2, 10.0), (9.0, -10.0)])

    def probe(self, policy, sets):
        error, value = (np.array([x]) for x in next(values))
        return {name: ProbedEpisodes(np.zeros(1), error, value) for name in sets}

    monkeypatch.setattr(example.MjlabWorlds, "probe", probe)
    learnt, learn = [], runner.learn

    def note(iterations):
        learn(iterations)
        learnt.append(copy.deepcopy(runner.alg.save()))

    monkeypatch.setattr(runner, "learn", note)
    cfg = CurriculumCfg(gates=replace(PASSES, error_margin=0.05), max_phases=2)
    entries = example.train(env, runner, cfg, iterations=6)
    assert [e.decision.action for e in entries] == ["commit", "rollback"]
    assert not same(learnt[0], learnt[1]), "phase 1 had moved on"
    assert same(runner.alg.save(), learnt[0])


def same(one, other) -> bool:
    """Tell whether two nested states are equal to the bit."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return all(map(same, one, other))
    return one == other


def test_two_probes_of_one_set_agree(env, runner):
    worlds = example.MjlabWorlds(env)
    policy = example.RunnerLearner(runner, 1).policy
    sets = {"candidate": ProbeSet(5, AtLevels({}))}
    one, two = (worlds.probe(policy, sets)["candidate"] for _ in range(2))
    assert len(one.returns) == N
    # Air times and the like outlive a reset in mjlab: not to the bit.
    assert one.returns.mean() == pytest.approx(two.returns.mean(), rel=0.01)
    error = one.tracking_error.mean()
    assert error == pytest.approx(two.tracking_error.mean(), rel=0.01)
