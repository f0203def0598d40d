"""Rollback brings back everything that learns, and nothing else."""

import pytest
import torch
from toys import SMALL, SMALL_MLP, PointMass, Recall, collect, make_learner, train

from horizon_rl.learning import (
    load_state_tensors,
    restore,
    state_tensors,
    take_snapshot,
)
from horizon_rl.support.errors import InputError

ACTORS = pytest.mark.parametrize(
    "actor", [SMALL, SMALL_MLP], ids=["transformer", "mlp"]
)


def copies(learner):
    return {name: value.clone() for name, value in state_tensors(learner).items()}


def assert_same(a, b):
    assert a.keys() == b.keys()
    for name, value in a.items():
        assert torch.equal(value, b[name]), name


@ACTORS
def test_rollback_restores_every_tensor_and_the_rate(actor):
    env = Recall(8)
    learner = make_learner(env, actor, max_learning_rate=1e-2)
    train(learner, env, 2)
    snapshot, before = take_snapshot(learner), copies(learner)
    rate = learner.learning_rate
    train(learner, env, 3)
    after = copies(learner)
    changed = [name for name in before if not torch.equal(before[name], after[name])]
    assert set(changed) == set(before)  # Nothing that could be forgotten unnoticed.
    assert learner.learning_rate != rate
    restore(learner, snapshot)
    assert_same(copies(learner), before)
    assert learner.learning_rate == rate
    # Training on must not write into the snapshot, or the next rollback is none.
    train(learner, env, 1)
    assert_same(snapshot.tensors, before)
    restore(learner, snapshot)
    assert_same(copies(learner), before)


@ACTORS
def test_training_after_a_rollback_is_as_if_nothing_had_been_between(actor):
    def run(detour: bool):
        env = PointMass(8)
        learner = make_learner(env, actor)
        train(learner, env, 2)
        snapshot = take_snapshot(learner)
        if detour:
            obs = env.reset()
            for _ in range(2):
                obs = collect(learner, env, obs)
                learner.update()
            with torch.inference_mode():  # And stop in the middle of a rollout.
                obs, reward, done, extras = env.step(learner.act(obs))
                learner.process_env_step(obs, reward, done, extras)
        restore(learner, snapshot)
        torch.manual_seed(7)
        figures = train(learner, PointMass(8, seed=7), 3)
        return figures, copies(learner)

    (plain, tensors), (detoured, detoured_tensors) = run(False), run(True)
    assert plain == detoured
    assert_same(tensors, detoured_tensors)


def test_restore_before_the_first_step_is_exact_too():
    env = PointMass(8)
    learner = make_learner(env)
    snapshot = take_snapshot(learner)
    torch.manual_seed(1)
    first = train(learner, PointMass(8, seed=1), 2)
    restore(learner, snapshot)
    torch.manual_seed(1)
    assert train(learner, PointMass(8, seed=1), 2) == first


def test_state_goes_into_another_learner():
    env = PointMass(8)
    learner, other = make_learner(env), make_learner(env, seed=1)
    train(learner, env, 1)
    load_state_tensors(other, copies(learner))
    assert_same(copies(other), copies(learner))


def test_state_has_the_normalisers_and_the_optimiser():
    learner = make_learner(PointMass(8))
    names = state_tensors(learner).keys()
    assert "actor.obs_normalizer.count" in names
    assert "actor.distribution.std_param" in names
    assert "critic.encoder.0.weight" in names
    assert "adam.actor.embedding.weight.exp_avg_sq" in names
    assert "adam.critic.mlp.0.bias.step" in names


def test_first_mismatch_is_named_and_nothing_is_changed():
    env = PointMass(8)
    learner = make_learner(env)
    good, before = copies(make_learner(env, seed=1)), copies(learner)
    name = "actor.embedding.weight"
    bad = [
        ({k: v for k, v in good.items() if k != name}, f"'{name}' is missing"),
        (good | {name: good[name][:, :2]}, rf"'{name}' is \(32, 2\) float32; expected"),
        (good | {name: good[name].double()}, "float64; expected: .* float32"),
        (good | {"actor.more": good[name]}, "'actor.more' is .* expected: missing"),
    ]
    for tensors, words in bad:
        with pytest.raises(InputError, match=words):
            load_state_tensors(learner, tensors)
    assert_same(copies(learner), before)
