"""An actor with a mirror: the mean of two views, acting, learning and in a file."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from tensordict import TensorDict
from toys import SMALL, SMALL_MLP

from horizon_rl.learning import (
    GramCfg,
    LearnerCfg,
    MlpCfg,
    PpoCfg,
    build_actor,
    build_learner,
)
from horizon_rl.support.errors import InputError
from horizon_rl.task.mirror import ACTION, OBSERVATION, Swap

NUM_STEPS = 8
KINDS = pytest.mark.parametrize(
    "cfg",
    [SMALL_MLP, replace(SMALL, num_layers=2, window=5)],
    ids=["mlp", "transformer"],
)


def make_actor(cfg: Any, symmetric: bool = True) -> Any:
    torch.manual_seed(0)
    obs = TensorDict({"actor": torch.zeros(1, 45)}, [1])
    actor: Any = build_actor(obs, 12, replace(cfg, symmetric=symmetric), NUM_STEPS)
    for layer in actor.mlp.modules():
        if isinstance(layer, torch.nn.Linear):
            torch.nn.init.normal_(layer.weight, std=0.3)
    actor.obs_normalizer.update(1.0 + 2.0 * torch.randn(100, 45))
    return actor.eval()


def swap(values: torch.Tensor, by: Swap) -> torch.Tensor:
    return values[..., list(by.order)] * torch.tensor(by.sign)


@torch.no_grad()
def act(actor, raw):
    """Return mean actions [t, n, -]; the worlds but the first end an episode at 20."""
    memory, means = None, []
    for step, inputs in enumerate(raw):
        obs = TensorDict({"actor": inputs}, [len(inputs)])
        mean, memory = actor.mean_step(obs, memory)
        means.append(mean)
        if step == 20 and memory is not None:
            memory.reset(torch.arange(len(inputs)) > 0)
    return torch.stack(means)


@KINDS
def test_action_is_the_mean_of_a_plain_actor_in_both_views(cfg):
    symmetric, plain = make_actor(cfg), make_actor(cfg, symmetric=False)
    assert symmetric.state_dict().keys() == plain.state_dict().keys()
    raw = torch.randn(60, 3, 45)
    seen, image = act(plain, raw), act(plain, swap(raw, OBSERVATION))
    expected = 0.5 * (seen + swap(image, ACTION))
    torch.testing.assert_close(act(symmetric, raw), expected, rtol=1e-5, atol=1e-6)
    assert (seen - expected).abs().max() > 0.01


@KINDS
def test_it_does_in_the_mirror_what_it_does_in_the_world(cfg):
    actor, raw = make_actor(cfg), torch.randn(60, 3, 45)
    image = act(actor, swap(raw, OBSERVATION))
    torch.testing.assert_close(swap(image, ACTION), act(actor, raw))


@KINDS
def test_update_finds_the_policy_that_acted_and_learns(cfg):
    widths = {"actor": 45, "critic": 7, "privileged": 3}

    def see() -> TensorDict:
        return TensorDict({k: torch.randn(6, n) for k, n in widths.items()}, [6])

    # It raises an error where acting and learning are not the same function.
    ppo = PpoCfg(num_steps=NUM_STEPS, num_epochs=2, num_minibatches=2)
    ppo = replace(ppo, check_first_kl=True)
    actor = replace(cfg, symmetric=True)
    torch.manual_seed(0)
    learner: Any = build_learner(see(), 12, 6, LearnerCfg(actor=actor, ppo=ppo))
    before = [parameter.clone() for parameter in learner.actor.parameters()]
    obs = see()
    for _ in range(3):
        for _ in range(NUM_STEPS):
            learner.act(obs)
            obs, dones = see(), torch.rand(6) < 0.1
            learner.process_env_step(obs, torch.randn(6), dones, {})
        learner.compute_returns(obs)
        learner.update()
    raw = torch.randn(5, 6, 45)
    found = act(learner.actor.eval(), raw)
    image = act(learner.actor, swap(raw, OBSERVATION))
    torch.testing.assert_close(swap(image, ACTION), found)
    changes = [
        (a - b).abs().max()
        for a, b in zip(before, learner.actor.parameters(), strict=True)
    ]
    assert min(changes) > 0.0


def test_whoever_sees_what_has_no_known_image_is_refused():
    for changes in (
        {"privileged_groups": ("privileged",)},
        {"obs_groups": ("critic",)},
    ):
        with pytest.raises(InputError, match="mirror image is not known"):
            replace(MlpCfg(symmetric=True), **changes)
    with pytest.raises(InputError, match="no-symmetric"):
        LearnerCfg(actor=MlpCfg(symmetric=True), algorithm="gram", gram=GramCfg())
