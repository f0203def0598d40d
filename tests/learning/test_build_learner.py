"""What is built: the paper's sizes, and who sees what."""

import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tensordict import TensorDict

import horizon_rl
from horizon_rl.learning import (
    CriticCfg,
    LearnerCfg,
    MlpCfg,
    PpoCfg,
    TransformerCfg,
    build_learner,
    state_tensors,
)
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import decode, encode

WIDTHS = {"actor": 45, "critic": 53, "privileged": 30}


def random_obs() -> TensorDict:
    return TensorDict({name: torch.randn(4, n) for name, n in WIDTHS.items()}, [4])


OBS = random_obs()


def build(actor=None, obs=OBS) -> Any:
    return build_learner(obs, 12, 4, LearnerCfg(actor=actor or TransformerCfg()))


def test_networks_have_the_papers_sizes():
    shapes = {name: tuple(t.shape) for name, t in state_tensors(build()).items()}
    layer = "actor.decoder.layers.0"
    assert shapes["actor.embedding.weight"] == (128, 45)
    assert shapes[f"{layer}.key_value.weight"] == (256, 128)
    assert shapes[f"{layer}.feedforward.0.weight"] == (512, 128)
    assert shapes["actor.mlp.weight"] == (12, 128)
    assert not any(name.startswith("actor.decoder.layers.1") for name in shapes)
    assert shapes["critic.encoder.0.weight"] == (64, 30)
    widths = [shapes[f"critic.mlp.{i}.weight"] for i in (0, 2, 4, 6)]
    assert widths == [(512, 53 + 64), (256, 512), (128, 256), (1, 128)]


def test_ppo_has_the_papers_settings():
    paper = {
        "num_steps": 24,
        "value_coef": 1.0,
        "clip_value_loss": True,
        "clip": 0.2,
        "entropy_coef": 0.01,
        "num_epochs": 8,
        "num_minibatches": 4,
        "learning_rate": 5e-5,
        "schedule": "adaptive",
        "gamma": 0.99,
        "lam": 0.95,
        "target_kl": 0.01,
        "max_grad_norm": 1.0,
    }
    assert paper.items() <= asdict(PpoCfg()).items()
    assert PpoCfg().max_learning_rate == 1e-3


@pytest.mark.parametrize("actor", [TransformerCfg(), MlpCfg()])
def test_first_actions_are_noise_around_little(actor):
    torch.manual_seed(0)
    learner = build(actor)
    obs = random_obs()
    with torch.no_grad():
        actions = learner.act(obs)
    assert actions.shape == (4, 12)
    assert learner.actor.output_mean.abs().max() < 0.5
    torch.testing.assert_close(learner.actor.output_std, torch.full((4, 12), 1.2))


def test_actor_does_not_see_what_the_critic_knows():
    learner = build(MlpCfg())
    with torch.no_grad():
        before = learner.actor(OBS), learner.critic(OBS)
        obs = OBS.clone()
        obs["critic"] += 1.0
        obs["privileged"] += 1.0
        after = learner.actor(obs), learner.critic(obs)
    assert torch.equal(before[0], after[0])
    assert not torch.equal(before[1], after[1])


def test_privileged_group_stays_out_of_the_normaliser():
    learner = build()
    before = random_obs()
    with torch.no_grad():
        code = learner.critic.get_latent(before)[:, 53:].clone()
        # A narrow range, far from zero: normalised, it would blow up what is beyond.
        seen = before.clone()
        seen["privileged"] = 40.0 + 0.01 * torch.randn(4, 30)
        learner.critic.update_normalization(seen)
        latent = learner.critic.get_latent(before)
    assert learner.critic.obs_normalizer.mean.shape == (53,)
    assert torch.equal(latent[:, 53:], code)


def test_missing_group_is_named_beside_those_that_exist():
    words = r"reads the observations \['privileged'\]; accepted: .* of actor, critic$"
    with pytest.raises(InputError, match=words):
        build(obs=OBS.select("actor", "critic"))
    with pytest.raises(InputError, match="'terrain'.*; accepted: .* of actor, critic"):
        build(MlpCfg(obs_groups=("actor", "terrain")))
    with pytest.raises(
        InputError, match=r"\[\]; accepted: one or more of actor, critic"
    ):
        build(MlpCfg(obs_groups=()))


@pytest.mark.parametrize("kind", [MlpCfg, TransformerCfg])
def test_oracle_actor_reads_the_privileged_group(kind):
    learner = build(kind(obs_groups=("actor", "privileged")))
    assert learner.actor.obs_dim == 45 + 30
    with torch.no_grad():
        learner.actor.mlp.apply(lambda m: getattr(m, "reset_parameters", list)())
        (before, _), seen = learner.actor.mean_step(OBS, None), OBS.clone()
        seen["privileged"] += 1.0
        assert not torch.equal(learner.actor.mean_step(seen, None)[0], before)
        learner.act(OBS)


def test_critic_reads_the_groups_that_it_is_told():
    critic = CriticCfg(
        obs_groups=("actor",), privileged_groups=("privileged", "critic")
    )
    learner: Any = build_learner(OBS, 12, 4, LearnerCfg(critic=critic))
    shapes = {name: tuple(t.shape) for name, t in state_tensors(learner).items()}
    assert shapes["critic.encoder.0.weight"] == (64, 30 + 53)
    assert shapes["critic.mlp.0.weight"] == (512, 45 + 64)
    with torch.no_grad():
        assert learner.critic(OBS).shape == (4, 1)


@pytest.mark.parametrize("actor", [TransformerCfg(window=31), MlpCfg()])
def test_settings_of_older_journals_mean_what_they_meant(actor):
    cfg = LearnerCfg(actor=actor)
    data = encode(cfg)
    for name in ("algorithm", "matmul", "compile"):
        del data[name]
    del data["actor"]["obs_groups"], data["critic"]["obs_groups"]
    del data["critic"]["privileged_groups"]
    assert decode(LearnerCfg, data) == cfg
    assert cfg.actor.obs_groups == ("actor",) and cfg.algorithm == "ppo"
    assert cfg.matmul == "tf32" and cfg.compile == "none"


def test_parts_are_compiled_alone_or_together():
    def parts(compile):
        cfg = LearnerCfg(compile=compile)
        return cfg.compiles("task"), cfg.compiles("update")

    assert parts("none") == (False, False) and parts("all") == (True, True)
    assert parts("task") == (True, False) and parts("update") == (False, True)


def test_nothing_asks_for_the_class_of_an_actor():
    package = Path(horizon_rl.__file__).parent
    asks = re.compile(r"isinstance\([^)]*\b(MLPModel|\w*Actor)\b")
    assert not [f for f in package.rglob("*.py") if asks.search(f.read_text())]


def test_bad_settings_are_refused():
    with pytest.raises(InputError, match="hidden_dims has 0 entries"):
        CriticCfg(hidden_dims=())
    with pytest.raises(InputError, match="gamma is 1.5; accepted: 0..1"):
        replace(PpoCfg(), gamma=1.5)
