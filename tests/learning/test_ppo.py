"""PPO's update against plain arithmetic, and what must not reach the weights."""

import math
from dataclasses import replace

import pytest
import torch
from plain import PlainMlps, plain_batch, plain_loss, plain_update
from reference import reference_means
from rsl_rl.algorithms import PPO as UpstreamPPO
from rsl_rl.storage import RolloutStorage
from torch.utils._python_dispatch import TorchDispatchMode
from toys import SMALL, SMALL_MLP, Falling, PointMass, collect, make_learner, train

from horizon_rl.learning import PpoCfg, state_tensors
from horizon_rl.learning.losses import adapted_rate
from horizon_rl.learning.storage import SequenceStorage
from horizon_rl.support.errors import InputError, NonFiniteError


def collected(actor, **changes):
    """Return a learner with a history behind it and a full rollout in it."""
    env = Falling(8)
    learner = make_learner(env, actor, **changes)
    obs = collect(learner, env, env.reset())
    learner.update()
    collect(learner, env, obs)
    return learner


class WholeWorlds(SequenceStorage):
    """A storage whose minibatches upstream's PPO can read."""

    def recurrent_mini_batch_generator(self, num_mini_batches, num_epochs=8):
        for ids in self.minibatch_ids():
            fields = self.minibatch(ids)._asdict()
            past, weights = fields.pop("past"), fields.pop("weights")
            assert weights is None
            yield RolloutStorage.Batch(**fields, hidden_states=(past, None))


def as_upstream(learner) -> UpstreamPPO:
    """Return upstream's PPO with the networks, rollout and moments of a learner."""
    cfg, storage = learner.cfg, learner.storage
    storage.__class__ = WholeWorlds
    upstream = UpstreamPPO(
        learner.actor,
        learner.critic,
        storage,
        num_learning_epochs=cfg.num_epochs,
        num_mini_batches=cfg.num_minibatches,
        learning_rate=learner.learning_rate,
    )
    upstream.optimizer = learner.gradient_steps.optimizer
    return upstream


def test_update_of_an_mlp_equals_a_plain_one_number_for_number():
    learner = collected(SMALL_MLP, reshuffle=False, learning_rate=1e-4)
    before = {name: value.clone() for name, value in state_tensors(learner).items()}
    nets = PlainMlps(learner, num_steps=16)
    torch.manual_seed(3)
    rate, table = plain_update(learner, nets)
    torch.manual_seed(3)
    figures = learner.update()
    assert learner.learning_rate == pytest.approx(rate, rel=1e-6)
    for name in table[0]:
        mean = sum(terms[name] for terms in table) / len(table)
        assert figures[name] == pytest.approx(mean, rel=1e-4, abs=1e-6), name
    for name, value in nets.weights.items():
        found = state_tensors(learner)[name].double()
        # The update moved it by far more than it may differ.
        assert (found - before[name]).abs().max() > 1e-3
        torch.testing.assert_close(found, value.detach(), rtol=0, atol=2e-5)


@pytest.mark.parametrize("actor", [SMALL, replace(SMALL, num_layers=2, window=7)])
def test_loss_of_a_transformer_equals_one_over_full_windows(actor):
    learner = collected(actor)
    storage, cfg = learner.storage, learner.cfg
    # Weights that did not act: the ratio is not 1 and the clipping has work to do.
    with torch.no_grad():
        for param in learner.actor.parameters():
            param += 0.03 * torch.randn_like(param)
    assert storage.history is not None
    past, first = storage.history
    dones = storage.dones[..., 0].bool()
    means = []
    for world, begun in enumerate(first.tolist()):
        raw = torch.cat((past[world, begun:], storage.observations["actor"][:, world]))
        done = torch.cat((torch.zeros(len(raw) - 16).bool(), dones[:, world]))
        means.append(
            reference_means(learner.actor, raw[:, None], done[:, None])[-16:, 0]
        )
    with torch.no_grad():
        value = learner.critic(storage.observations)[..., 0]
        mean = torch.stack(means, dim=1).float()
        std = state_tensors(learner)["actor.distribution.std_param"]
        _, expected = plain_loss(mean, std, value, plain_batch(storage), cfg)
    _, figures = learner.gradient_steps.loss(storage.minibatch(torch.arange(8)))
    assert float(figures["clip_fraction"]) > 0.05
    for name, value in expected.items():
        assert figures[name].item() == pytest.approx(value.item(), rel=1e-4), name
    assert dones.any() and (first > 0).any()


@pytest.mark.parametrize("actor", [SMALL, SMALL_MLP])
def test_update_equals_upstreams_where_the_cap_is_upstreams(actor):
    learners = [
        collected(actor, reshuffle=False, max_learning_rate=1e-2) for _ in range(2)
    ]
    torch.manual_seed(5)
    figures = learners[0].update()
    torch.manual_seed(5)
    upstream = as_upstream(learners[1])
    expected = upstream.update()
    assert figures["surrogate"] == pytest.approx(expected["surrogate"], abs=1e-6)
    assert figures["value_loss"] == pytest.approx(expected["value"], rel=1e-5)
    assert learners[0].learning_rate == pytest.approx(upstream.learning_rate)
    ours, theirs = (state_tensors(learner) for learner in learners)
    for name, value in ours.items():
        torch.testing.assert_close(value, theirs[name], rtol=1e-4, atol=1e-5)


def test_weight_of_the_entropy_falls_in_the_last_part_of_a_run():
    learner = collected(SMALL_MLP, final_entropy_coef=0.002, anneal_from=0.5)
    losses, entropy = {}, 0.0
    for progress in (0.0, 0.5, 0.75, 1.0):
        learner.schedule(progress)
        loss, figures = learner.gradient_steps.loss(
            learner.storage.minibatch(torch.arange(8))
        )
        losses[progress], entropy = loss.item(), figures["entropy"].item()
    assert losses[0.0] == losses[0.5]
    for progress, less in ((0.75, 0.004), (1.0, 0.008)):
        gain = losses[progress] - losses[0.0]
        assert gain == pytest.approx(less * entropy, rel=0.01)


def test_weight_of_the_entropy_stays_where_no_other_is_asked_for():
    learner = collected(SMALL_MLP)
    learner.schedule(1.0)
    assert learner.gradient_steps.entropy_coef.item() == pytest.approx(0.01)
    with pytest.raises(InputError, match="anneal_from is 1"):
        PpoCfg(anneal_from=1.0)


def test_rate_stays_below_its_cap():
    env = Falling(8)
    learner = make_learner(
        env, SMALL_MLP, target_kl=10.0, learning_rate=5e-5, max_learning_rate=3e-4
    )
    rates = [figures["learning_rate"] for figures in train(learner, env, 2)]
    assert rates == [3e-4, 3e-4]


def test_bound_of_the_rate_falls_toward_the_end_of_a_run():
    env = Falling(8)
    learner = make_learner(
        env,
        SMALL_MLP,
        target_kl=10.0,
        max_learning_rate=1e-3,
        final_learning_rate=1e-4,
        slow_from=0.6,
    )
    rates = []
    for progress in (0.0, 0.6, 0.8, 1.0):
        learner.schedule(progress)
        rates.append(train(learner, env, 1)[0]["learning_rate"])
    assert rates == pytest.approx([1e-3, 1e-3, 5.5e-4, 1e-4])
    with pytest.raises(InputError, match="final_learning_rate is 0.01"):
        PpoCfg(final_learning_rate=1e-2)


def test_rate_follows_the_divergence():
    rate = torch.tensor(1e-4)

    def after(kl):
        highest = torch.tensor(1.2e-4)
        return float(adapted_rate(rate, torch.tensor(kl), 0.01, 8e-5, highest))

    assert after(0.01) == pytest.approx(1e-4)
    assert after(0.021) == pytest.approx(8e-5)
    assert after(0.004) == pytest.approx(1.2e-4)
    assert after(0.0) == after(float("nan")) == pytest.approx(1e-4)


def test_fixed_schedule_keeps_the_rate():
    env = Falling(8)
    learner = make_learner(env, SMALL_MLP, schedule="fixed")
    assert train(learner, env, 1)[0]["learning_rate"] == 1e-3


def test_every_pass_cuts_again_only_if_asked():
    def passes(reshuffle):
        learner = collected(SMALL, reshuffle=reshuffle)
        storage = learner.storage
        parts = storage.minibatch_ids()
        actions = [storage.minibatch(ids).actions for ids in parts]
        assert len(actions) == 16
        return torch.cat(actions[:4], dim=1), torch.cat(actions[4:8], dim=1)

    assert torch.equal(*passes(reshuffle=False))
    one, two = passes(reshuffle=True)
    assert not torch.equal(one, two)
    torch.testing.assert_close(one.sum(), two.sum())


@pytest.mark.parametrize("actor", [SMALL, SMALL_MLP])
@pytest.mark.parametrize("where", ["rewards", "observations"])
def test_numbers_that_are_not_finite_never_reach_the_weights(actor, where):
    learner = collected(actor)
    storage = learner.storage
    target = (
        storage.observations["actor"] if where == "observations" else storage.returns
    )
    target[3, 2] = float("nan")
    if where == "rewards":
        storage.rewards[3, 2] = float("nan")
    before = {name: value.clone() for name, value in state_tensors(learner).items()}
    rate = learner.learning_rate
    with pytest.raises(NonFiniteError, match=f"minibatch .* of 16.*{where}"):
        learner.update()
    for name, value in state_tensors(learner).items():
        assert value.isfinite().all(), name
        if "normalizer" in name:
            assert torch.equal(value, before[name])
    # Training can go on, without what was poisoned.
    assert storage.step == 0 and learner.learning_rate == rate
    assert all(math.isfinite(v) for v in train(learner, Falling(8), 1)[0].values())


def test_after_the_first_refusal_nothing_changes_any_more():
    learner = collected(SMALL)
    weight = learner.actor.embedding.weight
    before = {name: value.clone() for name, value in state_tensors(learner).items()}
    calls = []

    def poison(gradient):
        calls.append(1)
        return gradient * float("inf") if len(calls) == 1 else gradient

    weight.register_hook(poison)
    with pytest.raises(NonFiniteError, match="minibatch 1 of 16.*the loss itself"):
        learner.update()
    assert len(calls) == 16
    for name, value in state_tensors(learner).items():
        assert torch.equal(value, before[name]), name


def test_update_asks_the_device_once():
    class Reads(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            aten = torch.ops.aten
            reads = aten._local_scalar_dense.default, aten.is_nonzero.default
            Reads.count += func in reads
            return func(*args, **(kwargs or {}))

    learners = collected(SMALL), collected(SMALL)
    with Reads():
        learners[0].update()
        # The table of figures is read by `tolist`, which is none of these.
        assert Reads.count == 0
        as_upstream(learners[1]).update()
        assert Reads.count > 3 * 16


def test_learner_needs_an_environment_per_minibatch():
    with pytest.raises(InputError, match="2 environments cannot be cut into 4"):
        make_learner(PointMass(2))


def test_rate_above_its_cap_is_refused():
    with pytest.raises(
        InputError, match="learning_rate is 0.01; accepted: 1e-05..0.001"
    ):
        PpoCfg(learning_rate=1e-2)
