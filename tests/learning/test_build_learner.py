"""What is built: the paper's sizes, and who sees what."""

from dataclasses import asdict, replace
from typing import Any

import pytest
import torch
from tensordict import TensorDict

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


def test_missing_group_is_named():
    with pytest.raises(InputError, match="lack the group 'privileged'"):
        build(obs=OBS.select("actor", "critic"))


def test_bad_settings_are_refused():
    with pytest.raises(InputError, match=r"hidden_dims is \(\)"):
        CriticCfg(hidden_dims=())
    with pytest.raises(InputError, match="gamma is 1.5; accepted: 0..1"):
        replace(PpoCfg(), gamma=1.5)
