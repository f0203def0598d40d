"""Steps that nothing is learnt from: they change no gradient, to the bit."""

from dataclasses import replace

import pytest
import torch
from toys import (
    CRITIC,
    PPO,
    SMALL,
    SMALL_MLP,
    Falling,
    PointMass,
    gradients,
    make_learner,
    train,
)

from horizon_rl.learning import LearnerCfg, build_ppo, state_tensors
from horizon_rl.support.graphs import WARM_UPS

GPU = pytest.param(
    "cuda:0",
    marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
)
WORLDS = 8
SOME = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0])
ACTORS = pytest.mark.parametrize(
    "actor", [SMALL, SMALL_MLP], ids=["transformer", "mlp"]
)


class Marked(Falling):
    """Worlds some of which are only looked at; `spoilt` worlds have other rewards."""

    trains, spoilt = SOME, torch.zeros(WORLDS)

    def step(self, actions):
        obs, reward, done, extras = super().step(actions)
        reward = reward + 50.0 * self.spoilt * reward.sin()
        return obs, reward, done, {**extras, "trains": self.trains}


def roll(learner, env, obs):
    """Collect a rollout, as a training loop does."""
    with torch.no_grad():
        for _ in range(learner.num_steps):
            obs, *rest = env.step(learner.act(obs))
            learner.process_env_step(obs, *rest)
        learner.compute_returns(obs)
    return obs


def collected(actor, spoilt=None, env=None, **changes):
    """Return a learner with a rollout; a world's data may be spoilt, not its actions."""
    env = env or Marked(WORLDS)
    learner = make_learner(env, actor, **changes)
    torch.manual_seed(1)
    obs = env.reset()
    if spoilt is not None:
        env.spoilt = spoilt
    roll(learner, env, obs)
    return learner


def moved_gradients(learner):
    """Return gradients and figures of minibatches, at weights that did not act."""
    torch.manual_seed(2)
    with torch.no_grad():
        for param in (*learner.actor.parameters(), *learner.critic.parameters()):
            param += 0.03 * torch.randn_like(param)
    return gradients(learner)


@ACTORS
def test_data_of_a_world_that_is_only_looked_at_changes_no_gradient(actor):
    expected = moved_gradients(collected(actor))
    assert expected.abs().max() > 0.0
    hidden = collected(actor, spoilt=1.0 - SOME)
    storage = hidden.storage
    ids = (SOME == 0.0).nonzero().squeeze(1)
    # Whatever else is stored of them may be another as well.
    storage.actions[:, ids] += 0.3
    storage.values[:, ids] -= 2.0
    storage.returns[:, ids] *= -3.0
    storage.actions_log_prob[:, ids] += 0.1
    for parameters in storage.distribution_params:
        parameters[:, ids] *= 1.5
    for name in ("critic", "privileged"):
        storage.observations[name][:, ids] += 1.0
    assert torch.equal(moved_gradients(hidden), expected)
    # The test can fail: what is learnt from does matter.
    shown = collected(actor, spoilt=SOME)
    assert not torch.equal(moved_gradients(shown), expected)


@ACTORS
def test_what_an_actor_sees_in_such_a_world_changes_no_gradient(actor):
    expected = moved_gradients(collected(actor))
    learner = collected(actor)
    ids = (SOME == 0.0).nonzero().squeeze(1)
    learner.storage.observations["actor"][:, ids] *= -0.7
    assert torch.equal(moved_gradients(learner), expected)


@ACTORS
def test_whole_update_does_not_depend_on_them(actor):
    """Rate, weights, moments of Adam: but for what the normalisers have seen."""

    def update(spoilt):
        learner = collected(actor, spoilt=spoilt)
        torch.manual_seed(4)
        figures = learner.update()
        return figures, {k: v.clone() for k, v in state_tensors(learner).items()}

    figures, tensors = update(None)
    other_figures, others = update(1.0 - SOME)
    assert figures == other_figures
    for name, value in tensors.items():
        assert torch.equal(value, others[name]), name


@ACTORS
def test_loss_is_that_of_the_other_worlds_alone(actor):
    learner = collected(actor)
    torch.manual_seed(2)
    with torch.no_grad():
        for param in learner.actor.parameters():
            param += 0.03 * torch.randn_like(param)
    storage, steps = learner.storage, learner.gradient_steps
    ids = SOME.nonzero().squeeze(1)
    if not storage.whole_worlds:
        everything = torch.arange(storage.num_envs * len(storage.rewards))
        ids = everything[SOME.repeat(len(storage.rewards)) == 1.0]
    alone = storage.minibatch(ids)._replace(weights=None)
    whole = torch.arange(WORLDS if storage.whole_worlds else len(SOME) * 16)
    loss, figures = steps.loss(storage.minibatch(whole))
    expected_loss, expected = steps.loss(alone)
    assert loss.item() == pytest.approx(expected_loss.item(), rel=1e-5)
    for name, value in expected.items():
        assert figures[name].item() == pytest.approx(value.item(), rel=1e-4), name


def test_advantages_are_normalised_by_those_of_the_other_worlds():
    learner = collected(SMALL_MLP)
    storage = learner.storage
    raw = (storage.returns - storage.values)[:, SOME == 1.0]
    found = storage.advantages[:, SOME == 1.0]
    expected = (raw - raw.mean()) / (raw.std(unbiased=False) + 1e-8)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert storage.weights is not None
    assert storage.weights.mean().item() == pytest.approx(1.0)
    assert storage.weights.unique().tolist() == pytest.approx([0.0, 8 / 5])


def test_where_all_worlds_count_it_is_the_usual_update():
    def update(env):
        learner = make_learner(env, SMALL_MLP)
        torch.manual_seed(1)
        roll(learner, env, env.reset())
        return learner.update()

    marked, plain = Marked(WORLDS), Falling(WORLDS)
    marked.trains = torch.ones(WORLDS)
    found, expected = update(marked), update(plain)
    for name, value in expected.items():
        # Advantages are divided by n instead of n - 1.
        assert found[name] == pytest.approx(value, rel=0.02, abs=1e-6), name


def test_rollout_that_teaches_nothing_leaves_everything_as_it_is():
    env = Marked(WORLDS)
    env.trains = torch.ones(WORLDS)
    learner = make_learner(env, SMALL_MLP)
    train(learner, env, 2)  # Now Adam has momentum.
    before = {k: v.clone() for k, v in state_tensors(learner).items()}
    rate = learner.learning_rate
    env.trains = torch.zeros(WORLDS)
    figures = train(learner, env, 2)
    assert figures[-1]["kl"] == figures[-1]["value_loss"] == 0.0
    assert learner.learning_rate == rate
    for name, value in state_tensors(learner).items():
        if "normalizer" not in name:
            assert torch.equal(value, before[name]), name
    env.trains = SOME
    train(learner, env, 1)
    moved = [k for k, v in state_tensors(learner).items() if not v.equal(before[k])]
    assert "actor.mlp.0.weight" in moved and "adam.actor.mlp.0.weight.step" in moved


def test_weights_may_change_within_a_rollout():
    """An episode that ends gives way to another instance: step by step, not by world."""
    env = Marked(WORLDS)
    learner = make_learner(env, SMALL_MLP)
    obs = env.reset()
    with torch.no_grad():
        for step in range(learner.num_steps):
            env.trains = torch.full((WORLDS,), float(step % 4 == 0))
            obs, *rest = env.step(learner.act(obs))
            learner.process_env_step(obs, *rest)
        learner.compute_returns(obs)
    weights = learner.storage.weights
    assert weights is not None
    expected = [4.0 if step % 4 == 0 else 0.0 for step in range(16)]
    assert weights[:, 3, 0].tolist() == expected


def test_value_losses_are_the_positive_advantages():
    learner = collected(SMALL_MLP, spoilt=torch.ones(WORLDS))
    storage = learner.storage
    found = learner.value_losses()
    assert found.shape == (16, WORLDS)
    raw = (storage.returns - storage.values)[..., 0]
    assert torch.equal(found, torch.where(raw > 0.0, raw, 0.0))
    assert 0.1 < (found > 0.0).float().mean() < 0.9


@pytest.mark.parametrize("device", ["cpu", GPU])
@pytest.mark.parametrize("compiles", ["none", "update"])
@ACTORS
def test_recorded_updates_with_weights_equal_plain_ones(
    device, compiles, actor, monkeypatch
):
    def run(switch: str):
        monkeypatch.setenv("HORIZON_GRAPHS", switch)
        torch.manual_seed(3)
        env = PointMass(WORLDS)
        ppo = replace(PPO, num_epochs=2)
        cfg = LearnerCfg(actor=actor, critic=CRITIC, ppo=ppo, compile=compiles)
        learner = build_ppo(env.reset().to(device), 2, WORLDS, cfg, device)
        obs, figures = env.reset(), []
        for rollout in range(WARM_UPS + 3):
            # The mask is data: a replay must read it again.
            trains = SOME.roll(rollout)
            with torch.no_grad():
                for _ in range(learner.num_steps):
                    actions = learner.act(obs.to(device)).cpu()
                    obs, reward, done, extras = env.step(actions)
                    extras = {k: v.to(device) for k, v in extras.items()}
                    extras["trains"] = trains.to(device)
                    learner.process_env_step(
                        obs.to(device), reward.to(device), done.to(device), extras
                    )
                learner.compute_returns(obs.to(device))
            figures.append(learner.update())
        return figures, state_tensors(learner)

    (figures, tensors), (plain_figures, plain) = run("1"), run("0")
    for found, expected in zip(figures, plain_figures, strict=True):
        assert abs(found["first_kl"]) < 1e-5
        assert found["value_loss"] == pytest.approx(expected["value_loss"], rel=0.02)
    for name, value in plain.items():
        if "adam" not in name:
            torch.testing.assert_close(tensors[name], value, rtol=0.02, atol=2e-3)
