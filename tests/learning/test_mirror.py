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
from horizon_rl.task.mirror import ACTION, OBSERVATION, Swap, join

NUM_STEPS = 8
KINDS = pytest.mark.parametrize(
    "cfg",
    [SMALL_MLP, replace(SMALL, num_layers=2, window=5)],
    ids=["mlp", "transformer"],
)

FORCE = Swap((0, 1, 2), (1.0, -1.0, 1.0))
"""The mirror image of an instance that is a force alone."""


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
def test_symmetric_oracle_encodes_the_mirror_image_of_its_instance(cfg):
    obs = TensorDict(
        {"actor": torch.zeros(1, 45), "privileged": torch.zeros(1, 3)}, [1]
    )
    cfg = replace(cfg, symmetric=True, privileged_groups=("privileged",))
    torch.manual_seed(0)
    actor: Any = build_actor(obs, 12, cfg, NUM_STEPS, lambda: FORCE).eval()
    torch.nn.init.normal_([*actor.mlp.parameters()][-2], std=0.3)

    def act_on(raw: torch.Tensor) -> torch.Tensor:
        seen, instance = raw.split((45, 3), dim=-1)
        obs = TensorDict({"actor": seen, "privileged": instance}, [len(raw)])
        return actor.mean_step(obs, None)[0].detach()

    raw, by = torch.randn(3, 48), join((OBSERVATION, FORCE))
    torch.testing.assert_close(swap(act_on(swap(raw, by)), ACTION), act_on(raw))
    wrong = join((OBSERVATION, Swap((0, 1, 2), (1.0, 1.0, 1.0))))
    difference = swap(act_on(swap(raw, wrong)), ACTION) - act_on(raw)
    assert difference.abs().max() > 0.01


@pytest.mark.parametrize("groups", [(), ("privileged",)], ids=["", "oracle"])
@KINDS
def test_update_finds_the_policy_that_acted_and_learns(cfg, groups):
    widths = {"actor": 45, "critic": 7, "privileged": 3}

    def see() -> TensorDict:
        return TensorDict({k: torch.randn(6, n) for k, n in widths.items()}, [6])

    # It raises an error where acting and learning are not the same function.
    ppo = PpoCfg(num_steps=NUM_STEPS, num_epochs=2, num_minibatches=2)
    ppo = replace(ppo, check_first_kl=True)
    actor = replace(cfg, symmetric=True, privileged_groups=groups)
    torch.manual_seed(0)
    settings = LearnerCfg(actor=actor, ppo=ppo)
    learner: Any = build_learner(see(), 12, 6, settings, image=lambda: FORCE)
    before = [parameter.clone() for parameter in learner.actor.parameters()]
    obs = see()
    for _ in range(3):
        for _ in range(NUM_STEPS):
            learner.act(obs)
            obs, dones = see(), torch.rand(6) < 0.1
            learner.process_env_step(obs, torch.randn(6), dones, {})
        learner.compute_returns(obs)
        learner.update()
    if not groups:
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
        {"privileged_groups": ("critic",)},
        {"obs_groups": ("critic",)},
    ):
        with pytest.raises(InputError, match="mirror image is not known"):
            replace(MlpCfg(symmetric=True), **changes)
    obs = TensorDict({k: torch.zeros(1, 45) for k in ("actor", "privileged")}, [1])
    cfg = MlpCfg(symmetric=True, privileged_groups=("privileged",))
    with pytest.raises(InputError, match="nothing tells a symmetric oracle"):
        build_actor(obs, 12, cfg)
    with pytest.raises(InputError, match="no-symmetric"):
        LearnerCfg(actor=MlpCfg(symmetric=True), algorithm="gram", gram=GramCfg())
