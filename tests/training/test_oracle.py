"""Oracles: actors that know the instance, from their start to the table."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import (
    ACTORS,
    CRITIC,
    PPO,
    assert_same,
    create,
    finish,
    journal,
    resume,
    run_phases,
    tiny,
    weights,
)
from tensordict import TensorDict

import horizon_rl
from horizon_rl.cli import main
from horizon_rl.domains import paper_catalogue, parse_catalogue, shipped_catalogue
from horizon_rl.evaluation.array_cache import ArrayCache
from horizon_rl.evaluation.evaluate import Evaluator
from horizon_rl.evaluation.suite_file import load_suite
from horizon_rl.learning import LearnerCfg, build_actor
from horizon_rl.policies.learned import LearnedPolicy, load_actor
from horizon_rl.policies.load import load_policy
from horizon_rl.policies.shipped import find_checkpoint
from horizon_rl.support.errors import InputError
from horizon_rl.task.mirror import ACTION, OBSERVATION, swap_instance
from horizon_rl.training.presets import (
    PRESETS,
    preset_cfg,
    preset_policy,
    shipped_start,
)

KINDS = ("mlp", "transformer")
NUM_PRIVILEGED = 5 + sum(p.draws for p in paper_catalogue().parameters.values())


def oracle(kind: str = "mlp", symmetric: bool = False, **changes):
    actor = replace(ACTORS[kind], privileged_groups=("privileged",), encoder_dim=4)
    actor = replace(actor, symmetric=symmetric)
    learner = LearnerCfg(actor=actor, critic=CRITIC, ppo=PPO)
    return tiny(learner=learner, **changes)


def train(path, cfg) -> None:
    finish(create(cfg, path, paper_catalogue()))


def see(n: int = 3, **changed) -> TensorDict:
    rng = torch.Generator().manual_seed(0)
    widths = {"actor": 45, "privileged": NUM_PRIVILEGED}
    seen = {name: torch.randn(n, k, generator=rng) for name, k in widths.items()}
    return TensorDict(seen | changed, [n])


@pytest.mark.parametrize("kind", KINDS)
def test_instance_decides_what_an_oracle_does_and_no_other_actor(tmp_path, kind):
    for name, cfg in {"oracle": oracle(kind), "blind": tiny(kind)}.items():
        train(
            tmp_path / name,
            replace(cfg, curriculum=replace(cfg.curriculum, max_phases=1)),
        )
        policy = LearnedPolicy(load_actor(find_checkpoint(str(tmp_path / name)))[0])
        here, there = see(), see(privileged=torch.zeros(3, NUM_PRIVILEGED))
        everyone = torch.ones(3, dtype=torch.bool)
        found = policy.act(here)
        policy.reset(everyone)
        assert torch.equal(found, policy.act(there)) == (name == "blind")


@pytest.mark.parametrize("kind", KINDS)
def test_instance_bypasses_the_normaliser(kind):
    actor: Any = build_actor(see(), 12, oracle(kind).learner.actor).eval()
    raw = torch.cat((see()["actor"], see()["privileged"]), dim=1)
    before = actor.features(raw)[:, 45:]
    actor.obs_normalizer.update(5.0 + 3.0 * torch.randn(100, 45))
    after = actor.features(raw)
    assert torch.equal(before, after[:, 45:])
    assert after.shape == (3, 45 + 4)


@pytest.mark.parametrize("kind", KINDS)
def test_oracle_begins_as_the_policy_it_starts_from(tmp_path, kind):
    train(tmp_path / "blind", tiny(kind, max_phases=1))
    start = find_checkpoint(str(tmp_path / "blind"))
    run = create(oracle(kind), tmp_path / "oracle", paper_catalogue(), init=start)
    run.close()
    blind, sighted = (
        LearnedPolicy(actor.eval())
        for actor in (load_actor(start)[0], run.learner.algorithm.actor)
    )
    for _ in range(10):
        torch.testing.assert_close(blind.act(see()), sighted.act(see()))
    # And it can learn to use what it knows.
    run = resume(tmp_path / "oracle")
    finish(run)
    reading = {"mlp": "mlp.0.weight", "transformer": "embedding.weight"}[kind]
    assert run.learner.algorithm.actor.state_dict()[reading][:, 45:].abs().min() > 0.0


def swap(values: torch.Tensor, by) -> torch.Tensor:
    return values[:, list(by.order)] * torch.tensor(by.sign)


@pytest.mark.parametrize("kind", KINDS)
def test_symmetric_oracle_is_loaded_as_it_was_and_starts_from_one_that_sees_nothing(
    tmp_path, kind
):
    train(tmp_path / "blind", tiny(kind, max_phases=1))
    start = find_checkpoint(str(tmp_path / "blind"))
    cfg = oracle(kind, symmetric=True, max_phases=1)
    run = create(cfg, tmp_path / "oracle", paper_catalogue(), init=start)
    finish(run)
    trained = LearnedPolicy(run.learner.algorithm.actor.eval())
    loaded = load_policy(str(tmp_path / "oracle"), "oracle")
    here, instance = see(), swap_instance(paper_catalogue())
    found = trained.act(here)
    policy = loaded.make(torch.device("cpu"))
    torch.testing.assert_close(policy.act(here), found)
    policy.reset(torch.ones(3, dtype=torch.bool))
    images = {"actor": OBSERVATION, "privileged": instance}
    there = TensorDict({k: swap(here[k], by) for k, by in images.items()}, [3])
    torch.testing.assert_close(swap(policy.act(there), ACTION), found)
    suite = load_suite("ood").choose(["mass"])
    scores = Evaluator(ArrayCache(None), num_threads=1).evaluate(loaded, suite, 4)
    assert len(scores.columns["mass"]) == 4


def test_symmetric_oracle_of_what_has_no_mirror_image_is_refused_by_name(tmp_path):
    wide = shipped_catalogue("extended")
    with pytest.raises(InputError, match="damage.faulty_joints .*no-symmetric"):
        create(oracle(symmetric=True), tmp_path / "run", wide)
    assert not (tmp_path / "run").exists()
    create(oracle(), tmp_path / "run", wide).close()


@pytest.mark.parametrize("kind", KINDS)
def test_interrupted_oracle_ends_as_one_that_was_not(tmp_path, kind):
    whole = create(oracle(kind), tmp_path / "whole")
    finish(whole)
    run_phases(create(oracle(kind), tmp_path / "parts"), 1)
    parts = resume(tmp_path / "parts")
    finish(parts)
    assert_same(weights(whole), weights(parts))
    assert journal(tmp_path / "whole") == journal(tmp_path / "parts")


def test_suite_tells_an_oracle_its_scenarios_instances(tmp_path):
    train(tmp_path / "run", oracle(max_phases=1))
    policy = load_policy(str(tmp_path / "run"), "oracle")
    seen = []

    class Listening(LearnedPolicy):
        def act(self, observations):
            seen.append(observations["privileged"].clone())
            return super().act(observations)

    actor = load_actor(find_checkpoint(str(tmp_path / "run")))[0]
    policy = replace(policy, make=lambda device: Listening(actor), digest=None)
    suite = load_suite("ood").choose(["mass"])
    found = Evaluator(ArrayCache(None), num_threads=1).evaluate(policy, suite, 4)
    assert len(found.columns["mass"]) == 4
    expected = suite.frozen["mass"].scenarios(4).pool
    expected = np.concatenate((expected.body, expected.parameters), axis=1)
    np.testing.assert_allclose(seen[0][:4].numpy(), expected, rtol=1e-5)


def test_oracle_is_refused_in_worlds_with_other_parameters(tmp_path):
    train(tmp_path / "run", oracle(max_phases=1))
    policy = load_policy(str(tmp_path / "run"), "mine")
    wider = parse_catalogue("""
extends = "paper"

[groups.mass.parameters.scale]
limit = [0.1, 9.0]
""")
    policy.check_parameters(paper_catalogue())
    load_policy("stand").check_parameters(wider)
    with pytest.raises(InputError, match="'mine' is an oracle that knows"):
        policy.check_parameters(wider)
    suite = load_suite("ood", catalogue=wider).choose(["mass"])
    with pytest.raises(InputError, match="other limit ranges"):
        Evaluator(ArrayCache(None), num_threads=1).evaluate(policy, suite, 1)


def test_oracle_cannot_leave_the_simulator(tmp_path, capsys):
    train(tmp_path / "run", oracle(max_phases=1))
    assert main(["export", str(tmp_path / "run"), str(tmp_path / "out.onnx")]) == 2
    assert "is an oracle" in capsys.readouterr().err
    assert not (tmp_path / "out.onnx").exists()
    policy = horizon_rl.load(str(tmp_path / "run"))
    with pytest.raises(InputError, match="0 are given: it acts only in a simulator"):
        policy(np.zeros(45))


@pytest.mark.parametrize("preset", PRESETS)
def test_preset_of_an_oracle_differs_in_what_the_actor_sees_alone(preset):
    kind = preset_policy(preset)
    usual, found = preset_cfg(preset, kind), preset_cfg(preset, "oracle")
    actor = found.learner.actor
    assert actor.privileged_groups == ("privileged",)
    assert actor.encoder_dim == found.learner.critic.encoder_dim
    assert shipped_start(found.learner) == shipped_start(usual.learner) is not None
    assert actor.symmetric == (preset == "laptop")
    blind = replace(actor, privileged_groups=(), encoder_dim=64)
    assert replace(found, learner=replace(found.learner, actor=blind)) == usual
