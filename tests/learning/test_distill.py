"""Distillation on toys: what is recovered, who labels what, and what is left out."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from tensordict import TensorDict
from toys import CRITIC, PPO, SMALL, SMALL_MLP, Falling, PointMass, gradients

from horizon_rl.learning import (
    DistillCfg,
    LearnerCfg,
    build_actor,
    build_learner,
    restore,
    state_tensors,
    take_snapshot,
)
from horizon_rl.learning.build import build_distillation
from horizon_rl.learning.distill import MEAN, STD, Distillation, ImitationSteps
from horizon_rl.learning.networks import Actor, PrivilegedCritic
from horizon_rl.learning.ppo import Ppo
from horizon_rl.learning.storage import SequenceStorage
from horizon_rl.learning.update import GradientSteps
from horizon_rl.policies.learned import LearnedPolicy
from horizon_rl.support.ranks import ALONE

WORLDS = 8
ACTORS = pytest.mark.parametrize(
    "actor", [SMALL, SMALL_MLP], ids=["transformer", "mlp"]
)
MODES = pytest.mark.parametrize("mode", ["dagger", "offline"])
MATRICES = torch.tensor([[1.0, 0.5, -1.0, 0.2], [0.3, -0.8, 0.1, 0.9]])


class Taught(Falling):
    """A point mass that says whose worlds it shows: those of even and odd number."""

    def observe(self):
        numbers = torch.arange(float(self.num_envs)).unsqueeze(1) % 2.0
        return super().observe().set("teacher", numbers)


class Linear(Actor):
    """An actor whose actions are linear in what it sees."""

    def __init__(self, obs: TensorDict, weight: torch.Tensor | None = None):
        super().__init__(obs, 2, replace(SMALL_MLP, initial_std=0.3), (1,))
        self.mlp: Any = torch.nn.Linear(self.obs_dim, 2)
        if weight is not None:
            torch.nn.init.zeros_(self.mlp.bias)
            with torch.no_grad():
                self.mlp.weight.copy_(weight)


def linear_teachers(obs) -> list[Actor]:
    return [Linear(obs, MATRICES), Linear(obs, -0.5 * MATRICES)]


def distil(env, teachers, student: Actor | None = None, **changes) -> Any:
    """Build a learner with these teachers, perhaps of an actor that no settings make."""
    torch.manual_seed(0)
    obs, cfg = env.reset(), DistillCfg(**changes)
    if student is None:
        learner = LearnerCfg(actor=SMALL_MLP, critic=CRITIC, ppo=PPO, distill=cfg)
        return build_learner(obs, 2, env.num_envs, learner, teachers=teachers)
    blank = torch.zeros(env.num_envs, 2)
    obs.update({MEAN: blank, STD: blank.clone()})
    storage = SequenceStorage(env.num_envs, obs, 2, PPO, student.is_recurrent, "cpu")
    critic = PrivilegedCritic(obs, CRITIC)
    ppo = Ppo(GradientSteps(student, critic, storage, "cpu", ALONE))
    imitation = ImitationSteps(ppo.gradient_steps, cfg)
    return Distillation(ppo, imitation, teachers, cfg)


def roll(learner, env, obs):
    with torch.no_grad():
        for _ in range(learner.num_steps):
            obs, *rest = env.step(learner.act(obs))
            learner.process_env_step(obs, *rest)
        learner.compute_returns(obs)
    return obs


def train(learner, env, num_iterations: int) -> list[dict[str, float]]:
    obs, figures = env.reset(), []
    for _ in range(num_iterations):
        obs = roll(learner, env, obs)
        figures.append(learner.update())
    return figures


def frozen(actor: Any) -> Any:
    """Let an actor's statistics of observations be, for its weights to be compared."""
    actor.obs_normalizer.until = 0
    return actor


@MODES
def test_a_linear_teacher_is_recovered_exactly(mode):
    """Its weights, and its noise."""
    env = PointMass(16)
    teacher: Any = Linear(env.reset(), MATRICES)
    student: Any = frozen(Linear(env.reset()))
    with torch.no_grad():
        teacher.distribution.std_param.fill_(0.15)
    learner = distil(env, [teacher], student, mode=mode)
    assert (student.mlp.weight - MATRICES).abs().max() > 0.3
    figures = []
    for rate, num_iterations in ((1e-2, 35), (1e-3, 15), (1e-4, 5)):
        learner.ppo.gradient_steps.distill = DistillCfg(learning_rate=rate)
        figures += train(learner, env, num_iterations)
    torch.testing.assert_close(
        student.mlp.weight, teacher.mlp.weight, rtol=0, atol=1e-3
    )
    torch.testing.assert_close(student.mlp.bias, teacher.mlp.bias, rtol=0, atol=1e-3)
    assert figures[-1]["action_error"] < 3e-3 < 0.3 < figures[0]["action_error"]
    noise = student.distribution.std_param
    torch.testing.assert_close(noise, teacher.distribution.std_param, rtol=0, atol=1e-3)


def test_teachers_are_routed_by_the_worlds_own_number():
    env = Taught(WORLDS)
    teachers = linear_teachers(env.reset())

    def error(order) -> float:
        """Return how far labels are from those of the teacher that a number means."""
        learner = distil(env, order)
        roll(learner, env, env.reset())
        seen = learner.ppo.storage.observations
        even, odd = (teacher(seen) for teacher in teachers)
        expected = torch.where(seen["teacher"] == 0.0, even, odd)
        return float((seen[MEAN] - expected).abs().max())

    assert error(teachers) < 1e-5
    assert error(teachers[::-1]) > 0.1


@ACTORS
@MODES
def test_labels_are_what_the_teacher_alone_would_do(actor, mode):
    """Also of one with a memory, over several rollouts and the ends of episodes."""
    env = Falling(WORLDS)
    torch.manual_seed(3)
    teacher: Any = build_actor(env.reset(), 2, actor, PPO.num_steps)
    torch.nn.init.normal_(list(teacher.mlp.parameters())[-2], std=0.5)
    learner = distil(env, [teacher], mode=mode)
    alone, obs = LearnedPolicy(teacher), env.reset()
    alone.reset(torch.ones(WORLDS, dtype=torch.bool))
    for _ in range(3):
        with torch.no_grad():
            for step in range(learner.num_steps):
                label = alone.act(obs)
                actions = learner.act(obs)
                seen = learner.ppo.storage.observations[step]
                torch.testing.assert_close(seen[MEAN], label, rtol=1e-4, atol=1e-5)
                acted = actions - (label if mode == "offline" else 0.0)
                assert mode == "dagger" or acted.abs().max() < 5 * actor.initial_std
                obs, reward, done, extras = env.step(actions)
                learner.process_env_step(obs, reward, done, extras)
                alone.reset(done)
            learner.compute_returns(obs)
        learner.update()


def test_offline_data_do_not_depend_on_the_student():
    seen = {}
    for mode in ("dagger", "offline"):
        for seed in (0, 1):
            env = PointMass(WORLDS)
            learner = distil(env, [Linear(env.reset(), MATRICES)], mode=mode)
            with torch.no_grad():
                for param in learner.actor.parameters():
                    param += 0.1 * seed
            torch.manual_seed(5)
            roll(learner, env, env.reset())
            seen[mode, seed] = learner.ppo.storage.observations["actor"].clone()
    assert torch.equal(seen["offline", 0], seen["offline", 1])
    assert not torch.equal(seen["dagger", 0], seen["dagger", 1])


def test_loss_against_a_hand_computation():
    """KL of N(1, 0.5) from N(0, 1) is ln 2 + (0.25 + 1) / 2 - 0.5 in each number."""
    env = PointMass(4)
    learner = distil(env, [Linear(env.reset(), MATRICES)])
    student: Any = learner.actor
    with torch.no_grad():
        for param in student.mlp.parameters():
            param.zero_()
        student.distribution.std_param.fill_(1.0)
    roll(learner, env, env.reset())
    seen, steps = learner.ppo.storage.observations, learner.ppo.gradient_steps
    seen[MEAN].fill_(1.0)
    seen[STD].fill_(0.5)
    batch = learner.ppo.storage.minibatch(torch.arange(16))
    figures = steps.loss(batch)[1]
    each = math.log(2.0) + (0.25 + 1.0) / 2.0 - 0.5
    assert figures["imitation"].item() == pytest.approx(2 * each, rel=1e-5)
    assert figures["action_error"].item() == pytest.approx(1.0)


class Masked(Taught):
    """Worlds some of which nothing may be learnt from."""

    trains = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0])

    def step(self, actions):
        obs, reward, done, extras = super().step(actions)
        return obs, reward, done, {**extras, "trains": self.trains}


def taught(actor) -> Any:
    """Return a learner of any actor with a rollout of masked worlds."""
    torch.manual_seed(0)
    env = Masked(WORLDS)
    cfg = LearnerCfg(actor=actor, critic=CRITIC, ppo=PPO)
    learner = build_distillation(
        env.reset(), 2, WORLDS, cfg, teachers=linear_teachers(env.reset())
    )
    torch.manual_seed(1)
    obs = env.reset()
    for _ in range(2):  # The second has a past.
        obs = roll(learner, env, obs)
        learner.ppo.storage.step = 0
    return learner


@ACTORS
def test_steps_that_do_not_count_change_no_gradient(actor):
    expected = gradients(taught(actor).ppo)
    assert expected.isfinite().all() and expected.abs().max() > 0.0
    masked = (Masked.trains == 0.0).nonzero().squeeze(1)
    for ids, matters in ((masked, False), (masked + 1, True)):
        learner = taught(actor)
        storage = learner.ppo.storage
        storage.observations[MEAN][:, ids] += 3.0
        storage.observations[STD][:, ids] *= 2.0
        for name in ("actor", "critic", "privileged"):
            storage.observations[name][:, ids] += 0.5
        storage.returns[:, ids] -= 2.0
        storage.values[:, ids] += 1.0
        storage.distribution_params[0][:, ids] += 0.2
        assert torch.equal(gradients(learner.ppo), expected) != matters


def test_what_lies_before_an_episode_changes_no_gradient():
    """The only padding that a rollout has: slots of the past that no episode filled."""
    expected, learner = gradients(taught(SMALL).ppo), taught(SMALL)
    history = learner.ppo.storage.history
    slots = torch.arange(history.raw.shape[1])
    empty = slots < history.first.unsqueeze(1)
    assert empty.any() and not empty.all()
    history.raw[empty] = 1e3
    assert torch.equal(gradients(learner.ppo), expected)
    history.raw[~empty] += 1.0
    assert not torch.equal(gradients(learner.ppo), expected)


def test_ppo_takes_over_and_teachers_stay_as_they_are():
    env = Taught(WORLDS)
    teachers = linear_teachers(env.reset())
    before = [{k: v.clone() for k, v in t.state_dict().items()} for t in teachers]
    learner = distil(env, teachers, ppo_from=0.5, mode="offline")
    rate = learner.learning_rate
    taught_by = train(learner, env, 2)[-1]
    assert "imitation" in taught_by and taught_by["learning_rate"] == pytest.approx(
        1e-3
    )
    assert learner.learning_rate == rate
    learner.schedule(0.5)
    labels = learner.ppo.storage.observations[MEAN].clone()
    figures = train(learner, env, 1)[-1]
    assert "surrogate" in figures and "imitation" not in figures
    assert torch.equal(labels, learner.ppo.storage.observations[MEAN])
    assert abs(figures["first_kl"]) < 1e-6
    assert learner.act(env.reset()).data_ptr() == learner.ppo.storage.actions.data_ptr()
    for teacher, old in zip(teachers, before, strict=True):
        for name, value in teacher.state_dict().items():
            assert torch.equal(value, old[name]), name


def test_rate_of_labels_is_on_record_beyond_the_bound_of_ppo_s():
    env = Taught(WORLDS)
    rate = 5.0 * PPO.max_learning_rate
    learner = distil(env, linear_teachers(env.reset()), learning_rate=rate)
    assert train(learner, env, 1)[-1]["learning_rate"] == rate
    assert learner.ppo.gradient_steps.optimizer.rate.item() == pytest.approx(rate)


@MODES
def test_snapshot_brings_everything_back(mode):
    env = Taught(WORLDS)
    learner = distil(env, linear_teachers(env.reset()), mode=mode)
    train(learner, env, 2)
    snapshot, ends = take_snapshot(learner), []
    for _ in range(2):
        restore(learner, snapshot)
        torch.manual_seed(7)
        env.rng.manual_seed(7)
        train(learner, env, 2)
        ends.append({k: v.clone() for k, v in state_tensors(learner).items()})
    for name, value in ends[0].items():
        assert torch.equal(value, ends[1][name]), name
    # No more than PPO has: what was taught is an ordinary checkpoint.
    assert {name.split(".")[0] for name in ends[0]} == {"actor", "critic", "adam"}
