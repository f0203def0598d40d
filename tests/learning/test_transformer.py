"""The transformer: cached or not, acting or learning, it is one function."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from reference import reference_latents, reference_means
from tensordict import TensorDict
from toys import SMALL

from horizon_rl.learning import TransformerCfg, build_actor
from horizon_rl.learning.history import History
from horizon_rl.policies.learned import LearnedPolicy
from horizon_rl.support.errors import InputError


def make_actor(cfg: TransformerCfg, num_inputs: int = 5, num_steps: int = 8) -> Any:
    """Build an actor with a head that speaks up and a normaliser that has learned."""
    torch.manual_seed(0)
    obs = TensorDict({"actor": torch.zeros(1, num_inputs)}, [1])
    actor: Any = build_actor(obs, 3, cfg, num_steps)
    torch.nn.init.normal_(actor.mlp.weight)
    actor.obs_normalizer.update(1.0 + 2.0 * torch.randn(100, num_inputs))
    return actor


def groups(raw):
    return TensorDict({"actor": raw}, [len(raw)])


def past_of(actor) -> History:
    return History(*(tensor.clone() for tensor in actor.live.history()))


@torch.no_grad()
def act_in_steps(actor, raw, dones):
    """Return mean actions [t, n, -] of inputs [t, n, -], one step at a time."""
    means = []
    for inputs, done in zip(raw, dones, strict=True):
        means.append(actor(groups(inputs)))
        actor.reset(done)
    return torch.stack(means)


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_cached_steps_equal_the_full_window_with_resets_at_random(num_layers):
    # 50 steps of a window of 6 with room for 8: the cache is rebuilt several times.
    actor = make_actor(replace(SMALL, num_layers=num_layers, window=6))
    raw = torch.randn(50, 4, 5)
    dones = torch.rand(50, 4) < 0.06
    dones[:, 3] = False  # One world runs through, far past its reach.
    means = act_in_steps(actor, raw, dones)
    torch.testing.assert_close(
        means, reference_means(actor, raw, dones).float(), rtol=1e-5, atol=1e-5
    )
    assert dones.any()


def test_cached_steps_equal_the_full_window_at_the_papers_size():
    actor = make_actor(TransformerCfg(), num_inputs=45, num_steps=24)
    raw = torch.randn(300, 2, 45)
    dones = torch.zeros(300, 2, dtype=torch.bool)
    dones[torch.tensor([40, 190]), 0] = True  # Before and past 127 steps.
    means = act_in_steps(actor, raw, dones)
    expected = reference_means(actor, raw, dones).float()
    torch.testing.assert_close(means, expected, rtol=1e-5, atol=1e-5)
    # With one layer nothing but the window counts.
    alone = reference_latents(actor, raw[300 - 128 :, 1])[-1]
    whole = reference_latents(actor, raw[:, 1])[-1]
    torch.testing.assert_close(alone, whole)


@pytest.mark.parametrize("num_layers", [1, 2])
def test_an_input_counts_exactly_as_long_as_its_reach(num_layers):
    cfg = replace(SMALL, num_layers=num_layers, window=5)
    raw, dones = torch.randn(30, 1, 5), torch.zeros(30, 1, dtype=torch.bool)
    before = act_in_steps(make_actor(cfg), raw, dones)
    raw[7] += 1.0
    change = (act_in_steps(make_actor(cfg), raw, dones) - before).abs().amax(dim=(1, 2))
    assert (change[:7] == 0).all()
    assert (change[7 : 8 + cfg.reach] > 1e-6).all()
    assert (change[8 + cfg.reach :] == 0).all()


def test_a_reset_world_acts_as_if_it_had_no_past():
    raw, dones = torch.randn(9, 2, 5), torch.zeros(9, 2, dtype=torch.bool)
    dones[3, 1] = True
    means = act_in_steps(make_actor(SMALL), raw, dones)
    alone = act_in_steps(make_actor(SMALL), raw[4:], dones[4:])
    torch.testing.assert_close(means[4:, 1], alone[:, 1])
    assert (means[4:, 0] - alone[:, 0]).abs().max() > 1e-3


def test_reset_actor_has_no_past():
    actor, raw = make_actor(SMALL), torch.randn(9, 2, 5)
    never = torch.zeros(9, 2, dtype=torch.bool)
    fresh = act_in_steps(actor, raw, never)
    assert not torch.equal(act_in_steps(actor, raw, never), fresh)
    actor.reset()
    assert torch.equal(act_in_steps(actor, raw, never), fresh)


def test_past_can_be_put_back():
    actor, raw = make_actor(SMALL), torch.randn(12, 2, 5)
    never = torch.zeros(12, 2, dtype=torch.bool)
    act_in_steps(actor, raw[:6], never[:6])
    past = past_of(actor)
    after = act_in_steps(actor, raw[6:], never[6:])
    actor.live.fill(past, actor.remember(*past))
    torch.testing.assert_close(act_in_steps(actor, raw[6:], never[6:]), after)


def test_cache_can_be_used_in_inference_mode_and_out_of_it():
    actor, raw = make_actor(SMALL), torch.randn(9, 2, 5)
    done = torch.tensor([True, False])
    with torch.inference_mode():
        actor(groups(raw[0]), stochastic_output=True)
        actor.reset(done)
    actor(groups(raw[1]))
    actor.reset(done)
    with torch.inference_mode():
        actor(groups(raw[2]))
    latent = actor.get_latent(groups(raw[3]))
    assert not latent.requires_grad


@pytest.mark.parametrize("num_layers", [1, 2])
def test_update_sees_what_acting_saw(num_layers):
    cfg = replace(SMALL, num_layers=num_layers, window=6)
    actor = make_actor(cfg, num_steps=8)
    raw, dones = torch.randn(24, 3, 5), torch.rand(24, 3) < 0.08
    act_in_steps(actor, raw[:16], dones[:16])
    actor.begin_rollout(3)
    past = past_of(actor)
    means = act_in_steps(actor, raw[16:], dones[16:])
    obs = TensorDict({"actor": raw[16:]}, [8, 3])
    again = actor(obs, hidden_state=past.with_rollout(dones[16:]))
    torch.testing.assert_close(again, means, rtol=1e-5, atol=1e-5)
    assert again.requires_grad


@pytest.mark.parametrize("num_layers", [1, 2])
def test_history_changes_outputs_but_takes_no_gradient(num_layers):
    cfg = replace(SMALL, num_layers=num_layers, window=6)
    actor = make_actor(cfg)
    obs = TensorDict({"actor": torch.randn(4, 2, 5)}, [4, 2])
    raw = torch.randn(2, cfg.reach, 5, requires_grad=True)
    first, cuts = torch.zeros(2, dtype=torch.long), torch.zeros(4, 2).bool()

    def output(past):
        return actor(obs, hidden_state=History(past, first).with_rollout(cuts))

    assert (output(raw) - output(raw + 1.0)).abs().max() > 1e-3
    actor.zero_grad()
    output(raw).square().sum().backward()
    assert raw.grad is None
    found = [
        param.grad.clone() for param in actor.parameters() if param.grad is not None
    ]

    # The same loss over keys and values that are constants from the start.
    actor.zero_grad()
    memory = actor.remember(raw, first)
    assert not any(x.requires_grad for pair in memory for x in pair)
    frozen = [(keys.clone(), values.clone()) for keys, values in memory]
    actor.remember = lambda raw, first: frozen
    output(raw).square().sum().backward()
    expected = [param.grad for param in actor.parameters() if param.grad is not None]
    for a, b in zip(found, expected, strict=True):
        assert torch.equal(a, b)

    # And it matters: with gradient through the past the numbers would be others.
    del actor.remember
    attached = type(actor).remember.__wrapped__
    actor.remember = lambda raw, first: attached(actor, raw, first)
    actor.zero_grad()
    output(raw).square().sum().backward()
    whole = [param.grad for param in actor.parameters() if param.grad is not None]
    assert any(not torch.allclose(a, b) for a, b in zip(found, whole, strict=True))


def test_policy_has_its_own_past_and_leaves_the_actor_alone():
    actor, raw = make_actor(SMALL), torch.randn(40, 2, 5)
    never = torch.zeros(40, 2, dtype=torch.bool)
    expected = act_in_steps(make_actor(SMALL), raw, never)
    state = {name: value.clone() for name, value in actor.state_dict().items()}
    policy = LearnedPolicy(actor)
    act_in_steps(actor, raw[:20], never[:20])
    policy.reset(torch.ones(3, dtype=torch.bool))
    policy.act(groups(torch.randn(3, 5)))
    policy.reset(torch.ones(2, dtype=torch.bool))  # Another number of worlds.
    means = torch.stack([policy.act(groups(inputs)) for inputs in raw])
    # Equal but for rounding, which depends on the CPU.
    torch.testing.assert_close(means, expected, rtol=1e-5, atol=1e-5)
    # The actor goes on where it was.
    later = act_in_steps(actor, raw[20:], never[20:])
    torch.testing.assert_close(later, expected[20:], rtol=1e-5, atol=1e-5)
    for name, value in actor.state_dict().items():
        assert torch.equal(value, state[name])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"num_heads": 3}, "multiple of twice"),
        ({"window": 0}, "window is 0; accepted: whole numbers, 1..4096"),
        ({"initial_std": 0.0}, "initial_std is 0"),
    ],
)
def test_impossible_sizes_are_refused(change, words):
    with pytest.raises(InputError, match=words):
        TransformerCfg(**change)
