"""GRAM on toys: who is pushed, and what learns when."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from toys import CRITIC, PPO, SMALL, SMALL_MLP, Falling, PointMass, collect, train

from horizon_rl.learning import (
    GramCfg,
    LearnerCfg,
    MlpCfg,
    build_learner,
    restore,
    state_tensors,
    take_snapshot,
)
from horizon_rl.learning.gram import WholeEpisodes
from horizon_rl.learning.gram_networks import LATENT, adaptation
from horizon_rl.learning.gram_steps import (
    HISTORY,
    PUSH,
    ROBUST,
    normalise_by_mode,
)
from horizon_rl.policies.learned import LearnedPolicy
from horizon_rl.support.errors import InputError
from horizon_rl.support.graphs import WARM_UPS
from horizon_rl.support.ranks import Ranks

WORLDS = 8
GRAM = GramCfg(
    latent_dim=3,
    context_dims=(16,),
    history=4,
    history_dims=(32, 16),
    epinet_dims=(16, 16),
    adversary_dims=(16,),
    adversary_every=2,
    adversary_rate=2e-4,
    push_rate=0.5,
)
CFG = LearnerCfg(actor=SMALL_MLP, critic=CRITIC, ppo=PPO, gram=GRAM, algorithm="gram")
HISTORY_PART, CALIBRATION = 0.7, 0.96


def make(env, device: str = "cpu", **changes: Any) -> Any:
    torch.manual_seed(0)
    cfg = replace(CFG, gram=replace(GRAM, **changes))
    return build_learner(env.reset().to(device), 2, env.num_envs, cfg, device)


def states(learner) -> dict[str, torch.Tensor]:
    return {k: v.clone() for k, v in state_tensors(learner).items()}


def changed(before, after) -> set[str]:
    """Name the parts of a learner that two of its states differ in."""
    differing = [k for k, v in after.items() if not torch.equal(v, before[k])]
    return {".".join(name.split(".")[:2]) for name in differing}


def test_advantages_are_normalised_in_each_mode_apart():
    robust = torch.tensor([0.0, 1.0, 0.0, 1.0]).reshape(1, 4, 1)
    raw = torch.tensor([1.0, 100.0, 3.0, 140.0]).reshape(1, 4, 1)
    expected = [-1.0, -1.0, 1.0, 1.0]
    assert normalise_by_mode(raw, robust).flatten().tolist() == pytest.approx(expected)
    # A step that does not count moves neither mean nor deviation.
    more = torch.cat((raw, torch.full((1, 2, 1), 1e3)), dim=1)
    modes = torch.cat((robust, torch.tensor([[[0.0], [1.0]]])), dim=1)
    weights = torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0, 0.0]).reshape(1, 6, 1)
    found = normalise_by_mode(more, modes, weights).flatten().tolist()
    assert found[:4] == pytest.approx(expected)


def test_a_rollout_normalises_by_mode():
    env = Falling(WORLDS)
    learner = make(env)
    collect(learner, env, env.reset())
    storage = learner.ppo.storage
    robust = storage.observations[ROBUST].bool()
    for mode in (robust, ~robust):
        mean, std = storage.advantages[mode].mean(), storage.advantages[mode].std()
        assert abs(mean) < 1e-5 and abs(std - 1.0) < 0.02


def test_only_robust_worlds_are_pushed_and_halves_swap():
    env = Falling(32)
    learner = make(env)
    learner.schedule(1 / 3)  # Half of the context's part.
    robust, sizes = [], []
    for _ in range(2):
        obs = env.reset()
        with torch.no_grad():
            for step in range(learner.num_steps):
                obs, *rest = env.step(learner.act(obs))
                seen = learner.ppo.storage.observations[step]
                pushed, angle, *_ = seen[PUSH].unbind(dim=1)
                push, mode = learner.pushes, seen[ROBUST].squeeze(1)
                assert torch.equal(pushed.bool(), push.norm(dim=1) > 0.0)
                assert not pushed[mode == 0.0].any()
                assert seen[LATENT][mode == 1.0].abs().max() == 0.0
                assert seen[LATENT][mode == 0.0].abs().max() > 0.0
                heading = torch.stack((angle.cos(), angle.sin()), dim=1)
                size = push.norm(dim=1, keepdim=True)
                torch.testing.assert_close(push, size * heading)
                sizes.append(size[pushed.bool()])
                learner.process_env_step(obs, *rest)
            learner.compute_returns(obs)
        robust.append(learner._robust.squeeze(1).clone())
        learner.update()
    assert torch.equal(robust[0], (torch.arange(32) >= 16).float())
    assert torch.equal(robust[1], 1.0 - robust[0])
    drawn = torch.cat(sizes)
    # Half of the steps of half of the worlds, up to half of 1 m/s.
    assert 0.4 < len(drawn) / (2 * 16 * 16) < 0.6
    assert 0.45 < drawn.max() <= 0.5 and drawn.min() < 0.1
    learner.schedule(HISTORY_PART)
    assert learner.pushes is None


def test_the_adversary_learns_to_push_where_it_costs_most():
    env = PointMass(WORLDS)
    learner = make(env, push_rate=1.0)
    collect(learner, env, env.reset())
    storage, adversary = learner.ppo.storage, learner.adversary
    angle = storage.observations[PUSH][..., 1:2]
    # Pushes to the left of 0 cost the policy: its advantage is smaller there.
    storage.advantages.copy_(torch.where(angle > 0.0, -1.0, 1.0))
    for _ in range(20):
        learner._learn_to_push()
    assert adversary(storage.observations[0]).mean() > 0.1


def test_what_learns_in_each_part():
    env = Falling(WORLDS)
    learner = make(env)
    learner.schedule(0.0)
    start = states(learner)
    train(learner, env, 2)
    first = states(learner)
    assert changed(start, first) == {
        *("actor.mlp", "actor.distribution", "actor.obs_normalizer"),
        *("critic.mlp", "critic.obs_normalizer"),
        *("context.mlp", "context.obs_normalizer"),
        *("adversary.mlp", "adversary.distribution", "adversary.obs_normalizer"),
        *("adversary.iteration", "adversary.rate"),
        *("adam.actor", "adam.critic", "adam.context", "adam.adversary"),
    }
    assert not any("adam.actor.history" in k for k, v in first.items() if v.any())
    learner.schedule(HISTORY_PART)
    figures = train(learner, env, 4)
    second = states(learner)
    history = {k for k, v in second.items() if not torch.equal(v, first[k])}
    assert changed(first, second) == {
        "actor.history",
        "adam.actor",
        "adversary.iteration",
    }
    assert all(".history." in name or "iteration" in name for name in history)
    assert not any("prior" in name or "indices" in name for name in history)
    assert figures[-1]["latent_error"] >= 0.0
    learner.schedule(CALIBRATION)
    figures = train(learner, env, 3)
    third = states(learner)
    assert changed(second, third) <= {"actor.history", "adversary.iteration"}
    moved = {k for k, v in third.items() if not torch.equal(v, second[k])}
    assert moved == {"actor.history.quantiles", "adversary.iteration"}
    assert set(figures[-1]) == {"spread", "alpha"}


def guessing() -> Any:
    """Return a learner that guesses, with a rollout in which episodes ended."""
    env = Falling(WORLDS)
    learner = make(env)
    learner.schedule(HISTORY_PART)
    torch.nn.init.normal_(learner.actor.history.head.weight)
    collect(learner, env, env.reset())
    return learner


def test_half_of_the_worlds_that_guess_act_without_their_guess():
    learner = guessing()
    seen = learner.ppo.storage.observations
    guess, _ = learner.actor.history.guess(seen[HISTORY])
    assert (guess.norm(dim=-1) > 0.0).all()
    assert (seen[ROBUST].sum(dim=1) == WORLDS // 2).all()
    torch.testing.assert_close(seen[LATENT], (1.0 - seen[ROBUST]) * guess)


def test_histories_in_training_begin_with_the_episode():
    storage = guessing().ppo.storage
    histories = storage.observations[HISTORY].unflatten(-1, (GRAM.history, -1))[1:]
    ended = storage.dones[:-1].squeeze(-1).bool()
    steps = histories.any(dim=-1)
    assert ended.any() and not steps[ended][:, :-1].any()
    assert steps[ended][:, -1].all() and steps[~ended][:, -2:].all()


def test_quantiles_are_those_of_one_whole_episode_of_every_world():
    episodes = WholeEpisodes(2, torch.device("cpu"))
    # Spreads of 9 are of episodes that were under way, or of those that came after.
    spreads = [[9.0, 9.0], [1.0, 9.0], [2.0, 3.0], [9.0, 4.0]]
    for spread, ends in zip(spreads, [[1, 0], [0, 1], [1, 0], [0, 1]], strict=True):
        assert episodes.take_quantiles() is None
        episodes.add(torch.tensor(spread), torch.tensor(ends))
    found = episodes.take_quantiles()  # Of 1, 2, 3 and 4.
    assert found is not None and found.tolist() == [3.0, 3.0]
    assert episodes.take_quantiles() is None


def test_to_calibrate_it_takes_mean_actions():
    env = Falling(WORLDS)
    learner = make(env)
    for progress, is_mean in ((0.0, False), (HISTORY_PART, False), (CALIBRATION, True)):
        learner.schedule(progress)
        learner.forget()
        with torch.no_grad():
            actions = learner.act(env.reset())
        mean = learner.ppo.storage.distribution_params[0][0]
        assert torch.equal(actions, mean) == is_mean


def test_alpha_is_1_in_distribution_and_falls_outside():
    env = PointMass(32)
    learner = make(env)
    learner.schedule(0.0)
    train(learner, env, 3)
    learner.schedule(HISTORY_PART)
    figures = train(learner, env, 60)
    assert figures[-1]["epinet_loss"] < 0.2 * figures[0]["epinet_loss"]
    learner.schedule(CALIBRATION)
    train(learner, env, 3)
    encoder = learner.actor.history
    assert 0.0 < encoder.quantiles[0] < encoder.quantiles[1]
    collect(learner, env, env.reset())
    usual = learner.ppo.storage.observations[HISTORY].flatten(0, 1)

    def trust(history) -> torch.Tensor:
        return adaptation(encoder.guess(history)[1], encoder.quantiles)

    with torch.no_grad():
        inside, outside = trust(usual), trust(usual + 10.0)
        assert (inside == 1.0).float().mean() > 0.8 and inside.median() == 1.0
        assert outside.max() < 0.05
        latent, _ = encoder.guess(usual)
        assert (
            encoder.trusted(usual + 10.0).abs().max() < 0.1 * latent.abs().max() + 1e-6
        )


def test_the_guess_is_learnt_where_the_history_tells_the_context():
    env = PointMass(32)  # It shows all of its parameters.
    learner = make(env)
    with torch.no_grad():
        for param in learner.models["context"].mlp.parameters():
            param.copy_(0.5 * torch.randn_like(param))
    learner.schedule(HISTORY_PART)
    figures = train(learner, env, 40)
    assert figures[-1]["latent_error"] < 0.1 * figures[0]["latent_error"]


class Masked(Falling):
    """Worlds some of which nothing may be learnt from."""

    trains = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0])

    def step(self, actions):
        obs, reward, done, extras = super().step(actions)
        return obs, reward, done, {**extras, "trains": self.trains}


@pytest.mark.parametrize("part", ["_context", "_adversary", "_history"])
def test_steps_that_do_not_count_change_no_gradient(part):
    def gradients(ids=None) -> torch.Tensor:
        env = Masked(WORLDS)
        learner = make(env, push_rate=1.0)
        learner.schedule(HISTORY_PART if part == "_history" else 0.1)
        collect(learner, env, env.reset())
        storage, steps = learner.ppo.storage, getattr(learner, part)
        if ids is not None:
            for name in ("actor", "critic", "privileged", HISTORY):
                storage.observations[name][:, ids] += 0.5
            storage.observations[PUSH][:, ids, 1] += 0.1
            storage.returns[:, ids] -= 2.0
            storage.advantages[:, ids] += 3.0
        torch.manual_seed(2)
        steps.ids.copy_(next(storage.minibatch_ids()))
        steps.compute_gradients()
        return steps.gradient_and_figures.clone()

    expected = gradients()
    assert expected.isfinite().all() and expected.abs().max() > 0.0
    masked = (Masked.trains == 0.0).nonzero().squeeze(1)
    assert torch.equal(gradients(masked), expected)
    assert not torch.equal(gradients(masked + 1), expected)


def test_robust_worlds_teach_the_context_nothing_and_the_unpushed_no_adversary():
    def gradients(part, spoil) -> torch.Tensor:
        env = Falling(WORLDS)
        learner = make(env)
        collect(learner, env, env.reset())
        spoil(learner.ppo.storage)
        steps = getattr(learner, part)
        torch.manual_seed(2)
        steps.ids.copy_(next(learner.ppo.storage.minibatch_ids()))
        steps.compute_gradients()
        return steps.gradient_and_figures.clone()

    def other_parameters(storage):
        robust = storage.observations[ROBUST]
        storage.observations["privileged"] += 0.5 * robust

    def other_advantages(storage):
        pushed = storage.observations[PUSH][..., :1]
        storage.advantages += 2.0 * (1.0 - pushed)

    for part, spoil in (
        ("_context", other_parameters),
        ("_adversary", other_advantages),
    ):
        same = gradients(part, lambda storage: None)
        assert same.abs().max() > 0.0
        torch.testing.assert_close(gradients(part, spoil), same, rtol=0, atol=0)


def test_a_minibatch_without_a_push_moves_no_adversary():
    env = Falling(WORLDS)
    learner = make(env, push_rate=0.0)
    collect(learner, env, env.reset())
    before = states(learner)
    learner._learn_to_push()
    assert changed(before, states(learner)) <= {"adversary.rate"}


@pytest.mark.parametrize("progress", [0.3, HISTORY_PART, CALIBRATION])
def test_snapshot_brings_everything_back(progress):
    env = Falling(WORLDS)
    learner = make(env)
    learner.schedule(progress)
    train(learner, env, 3)
    snapshot, ends = take_snapshot(learner), []
    for _ in range(2):
        restore(learner, snapshot)
        torch.manual_seed(7)
        env.rng.manual_seed(7)
        train(learner, env, 3)
        ends.append(states(learner))
    assert changed(*ends) == set()
    assert int(ends[0]["adversary.iteration"]) == 6


def test_a_policy_guesses_from_its_own_episode_alone():
    env = Falling(WORLDS)
    learner = make(env)
    learner.schedule(HISTORY_PART)
    train(learner, env, 8)
    actor = learner.actor
    with torch.no_grad():
        for part in (actor.history.head, actor.mlp[-1]):
            part.weight.normal_(std=0.5)
        actor.history.quantiles.copy_(torch.tensor([1e3, 2e3]))  # All is trusted.
    generator = torch.Generator().manual_seed(1)
    shown = [
        env.observe().set("actor", torch.randn(WORLDS, 4, generator=generator))
        for _ in range(7)
    ]
    policy, ended = LearnedPolicy(actor), torch.arange(WORLDS) < 3
    acted = []
    for step, obs in enumerate(shown):
        if step == 3:
            policy.reset(ended)
        acted.append(policy.act(obs))
    seen = [actor.normalise(obs) for obs in shown]
    past = torch.stack(seen[3:7], dim=1)
    cut = torch.stack((torch.zeros_like(seen[0]), *seen[3:6]), dim=1)

    def by_hand(window, now):
        latent = actor.history.guess(window.flatten(1))[0]
        return actor.mlp(torch.cat((now, latent), dim=1))

    with torch.no_grad():
        torch.testing.assert_close(acted[6], by_hand(past, seen[6]))
        torch.testing.assert_close(acted[5][ended], by_hand(cut, seen[5])[ended])
        assert not torch.allclose(acted[5][~ended], by_hand(cut, seen[5])[~ended])
    # The same again, to the bit: indices are the policy's own.
    again = LearnedPolicy(actor)
    for step, obs in enumerate(shown):
        if step == 3:
            again.reset(ended)
        assert torch.equal(again.act(obs), acted[step])
    # A robot that guesses is what others learn from, too.
    actor.reset()
    with torch.no_grad():
        torch.testing.assert_close(actor(shown[0]), acted[0])


def test_who_is_refused():
    for actor in (SMALL, MlpCfg(privileged_groups=("privileged",))):
        with pytest.raises(InputError, match="accepted: --policy mlp"):
            replace(CFG, actor=actor)
    with pytest.raises(InputError, match="calibrate_from"):
        GramCfg(history_from=0.8, calibrate_from=0.5)
    two, env = Ranks(), Falling(WORLDS)
    two.size = 2
    with pytest.raises(InputError, match="one rank, not on 2"):
        build_learner(env.reset(), 2, WORLDS, CFG, ranks=two)


GPU = pytest.param(
    "cuda:0",
    marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
)


@pytest.mark.parametrize("device", ["cpu", GPU])
@pytest.mark.parametrize("progress", [0.3, HISTORY_PART, CALIBRATION])
def test_recorded_training_equals_training(device, progress, monkeypatch):
    def run(switch: str):
        monkeypatch.setenv("HORIZON_GRAPHS", switch)
        env = Falling(WORLDS)
        learner = make(env, device)
        learner.schedule(progress)
        torch.manual_seed(3)
        obs = env.reset()
        for _ in range(2 * WARM_UPS + 4):  # The adversary learns in every other.
            with torch.no_grad():
                for _ in range(learner.num_steps):
                    actions = learner.act(obs.to(device)).cpu()
                    obs, reward, done, extras = env.step(actions)
                    extras = {k: v.to(device) for k, v in extras.items()}
                    step = (obs.to(device), reward.to(device), done.to(device))
                    learner.process_env_step(*step, extras)
                learner.compute_returns(obs.to(device))
            learner.update()
        return states(learner)

    recorded, plain = run("1"), run("0")
    for name, value in plain.items():
        if "adam" not in name:
            torch.testing.assert_close(recorded[name], value, rtol=0.02, atol=2e-3)
