"""GRAM in the simulator: its budget, its pushes, resume, export, and who is refused."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import (
    ACTORS,
    CRITIC,
    PHASE_STEPS,
    PPO,
    assert_same,
    create,
    finish,
    journal,
    levels,
    resume,
    run_phases,
    tiny,
    weights,
)
from tensordict import TensorDict

from horizon_rl.cli import main
from horizon_rl.curriculum import Entry
from horizon_rl.domains import paper_catalogue
from horizon_rl.learning import GramCfg, LearnerCfg, build_policy
from horizon_rl.policies.deployment import export_policy
from horizon_rl.policies.learned import LearnedPolicy, load_actor
from horizon_rl.policies.load import load_policy
from horizon_rl.policies.onnx import OnnxPolicy
from horizon_rl.policies.onnx_graph import to_onnx
from horizon_rl.policies.shipped import find_checkpoint
from horizon_rl.support.errors import InputError
from horizon_rl.training.presets import preset_cfg

PAPER = paper_catalogue()
GRAM = GramCfg(
    history=4,
    history_dims=(16, 8),
    adversary_dims=(8,),
    adversary_every=2,
    push_rate=0.3,
    push_speed=2.0,
    calibrate_from=0.8,
)
STEPS = 12 * PHASE_STEPS
"""Six phases, since probes take as many."""


def gram(max_phases=6, **changes: Any):
    learner = LearnerCfg(actor=ACTORS["mlp"], critic=CRITIC, ppo=PPO, gram=GRAM)
    options = {"method": "gram", "steps": STEPS, "stagger": True, "learner": learner}
    return tiny(max_phases=max_phases, **{**options, **changes})


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("gram") / "run"
    run = create(gram(), path, PAPER)
    events = list(run.events())
    run.close()
    return run, path, events


def test_a_run_is_divided_by_its_env_steps(trained):
    run, _, events = trained
    assert run.cfg.learner.algorithm == "gram"
    figures = [e for e in events if not isinstance(e, Entry)]
    before = [0, *(e.env_steps for e in figures[:-1])]
    shares = [spent / STEPS for spent in before]
    adversary = sum("adversary_loss" in e.figures for e in figures)
    assert 0.4 < adversary / sum("surrogate" in e.figures for e in figures) < 0.6
    for share, each in zip(shares, figures, strict=True):
        is_first = "surrogate" in each.figures
        assert is_first != ("alpha" in each.figures)
        # A phase's probes count before its successor begins.
        assert is_first == (share < 2 / 3) or abs(share - 2 / 3) < 0.1
        assert ("latent_error" in each.figures) <= (2 / 3 - 0.1 < share < 0.8)
    assert "surrogate" in figures[0].figures
    assert figures[-1].figures["alpha"] > 0.0


def test_it_trains_at_the_limit_unless_told(trained, tmp_path):
    assert {*levels([e for e in trained[2] if isinstance(e, Entry)])[0].values()} == {
        1.0
    }
    for text, expected in (
        ("0", {"mass": 0.0, "com": 0.0}),
        ("0.5", {"mass": 0.5, "com": 0.5}),
        ("mass=0.5", {"com": 0.0}),
    ):
        cfg = gram(levels=text)
        method = cfg.make_method(PAPER)
        groups = tuple(expected)
        proposal = method.start(groups).proposal
        assert proposal is not None and proposal.levels == expected


def test_the_adversary_pushes_robots_through_the_physics(tmp_path):
    run = create(gram(), tmp_path / "run", PAPER)
    run.close()
    algorithm: Any = run.learner.algorithm
    backend, found = run.worlds.env.backend, []
    push = backend.push

    def noting_push(velocity):
        before = backend.state.linear_velocity.clone()
        push(velocity)
        found.append((velocity.clone(), backend.state.linear_velocity - before))

    backend.push = noting_push  # pyright: ignore[reportAttributeAccessIssue]
    proposal = run.curriculum.ask()
    assert proposal is not None
    run.worlds.begin(0, proposal.distribution)
    run.learner.begin(run.worlds)
    algorithm.schedule(0.6)
    run.learner.iterate(run.worlds)
    # In every step the adversary's, then the scenario's.
    assert len(found) == 2 * PPO.num_steps
    asked, moved = map(torch.stack, zip(*found[::2], strict=True))
    assert asked[:, :4].abs().max() == 0.0 < asked[:, 4:].norm(dim=-1).max() <= 1.8
    torch.testing.assert_close(moved[..., :2], asked, rtol=1e-5, atol=1e-5)
    found.clear()
    algorithm.schedule(0.7)
    run.learner.iterate(run.worlds)
    assert len(found) == PPO.num_steps


def test_interrupted_run_ends_as_one_that_was_not(trained, tmp_path):
    whole, path, _ = trained
    run_phases(create(gram(), tmp_path / "parts", PAPER), 2)
    run_phases(resume(tmp_path / "parts"), 2)
    parts = resume(tmp_path / "parts")
    finish(parts)
    assert_same(weights(whole), weights(parts))
    assert journal(path) == journal(tmp_path / "parts")


def test_a_new_budget_without_room_for_its_parts_is_refused(trained):
    _, path, _ = trained
    before = {file: file.read_bytes() for file in path.glob("*.json*")}
    with pytest.raises(InputError, match="divides the run's --steps"):
        resume(path, steps=0, minutes=2.0)
    assert {file: file.read_bytes() for file in path.glob("*.json*")} == before


def test_its_policy_is_calibrated_evaluated_to_the_bit_and_exported(
    trained, short_exports
):
    _, path, _ = trained
    actor: Any
    actor, _, record = load_actor(find_checkpoint(str(path)))
    low, high = actor.history.quantiles.tolist()
    assert 0.0 < low < high and record.levels == {"mass": 1.0, "com": 1.0}
    policy = load_policy(str(path))
    torch.manual_seed(1)
    shown = [TensorDict({"actor": torch.randn(3, 45)}, [3]) for _ in range(6)]
    once, again = (
        [runner.act(obs) for obs in shown]
        for runner in (policy.make(torch.device("cpu")) for _ in range(2))
    )
    assert all(map(torch.equal, once, again))
    exported = export_policy(str(path))
    assert exported.metadata["kind"] == "gram" and exported.metadata["window"] == 3
    assert exported.largest_difference < 1e-4
    assert exported.policy.inputs["cache"] == (1, 3, 45)
    assert main(["status", str(path)]) == 0


def test_the_file_acts_as_the_policy_where_it_trusts_its_guesses():
    torch.manual_seed(0)
    cfg = replace(gram().learner, algorithm="gram")
    obs = TensorDict({"actor": torch.zeros(1, 45)}, [1])
    actor: Any = build_policy(obs, 12, cfg)
    actor.obs_normalizer.update(1.0 + 2.0 * torch.randn(100, 45))
    torch.nn.init.normal_(actor.history.head.weight, std=0.5)
    with torch.no_grad():
        spreads = actor.history.guess(torch.randn(500, 180))[1]
        actor.history.quantiles.copy_(spreads.quantile(torch.tensor([0.3, 0.7])))
    policy, file = LearnedPolicy(actor.eval()), OnnxPolicy(to_onnx(actor))
    plain: Any = build_policy(obs, 12, cfg)
    plain.load_state_dict(actor.state_dict())
    plain.history.quantiles.zero_()
    robust, differences = LearnedPolicy(plain.eval()), []
    memory = file.blank(1)
    for step in range(40):
        if step == 25:  # An episode ends: the cache may keep what it has.
            memory["valid"][:] = 0
            policy.reset(torch.ones(1, dtype=torch.bool))
        obs = TensorDict({"actor": 1.0 + 2.0 * torch.randn(1, 45)}, [1])
        expected = policy.act(obs).numpy()
        found = file.step(obs["actor"].numpy(), memory)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
        differences.append(np.abs(expected - robust.act(obs).numpy()).max())
    assert max(differences) > 1e-3  # Guesses are used.


def test_it_starts_from_a_policy_without_latents_and_acts_as_that_does(tmp_path):
    cfg = tiny(max_phases=1)
    plain = create(cfg, tmp_path / "plain", PAPER)
    finish(plain)
    start = find_checkpoint(str(tmp_path / "plain"))
    run = create(gram(), tmp_path / "run", PAPER, init=start)
    run.close()
    actor: Any = run.learner.algorithm.actor
    obs = TensorDict({"actor": torch.randn(5, 45), "latent": torch.randn(5, 8)}, [5])
    with torch.no_grad():
        torch.testing.assert_close(actor(obs), load_actor(start)[0](obs))
    other = create(
        gram(), tmp_path / "other", PAPER, init=tmp_path / "run/checkpoints/initial"
    )
    other.close()
    assert_same(weights(run), weights(other))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"privileged_groups": ("privileged",), "encoder_dim": 4}, ""),
        ({"std_parameter": "log"}, ": .*log_std_param"),
    ],
)
def test_weights_that_do_not_fit_are_refused(tmp_path, changes, why):
    actor = replace(ACTORS["mlp"], **changes)
    other = tiny(learner=LearnerCfg(actor=actor, critic=CRITIC, ppo=PPO))
    start = tmp_path / "other" / "checkpoints" / "initial"
    create(other, tmp_path / "other", PAPER).close()
    with pytest.raises(InputError, match=f"is of another policy{why}"):
        create(gram(), tmp_path / "run", PAPER, init=start)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--policy", "transformer"], "accepted: --policy mlp"),
        (["--policy", "oracle"], "accepted: --policy mlp"),
        (["--minutes", "1"], "divides the run's --steps"),
        (["--steps", "9000"], "accepted: 36000 or more"),
        (["--levels", "1.5"], "levels is 1.5"),
        (["--learner.gram.history-from", "2"], "--learner.gram.history-from is 2"),
    ],
)
def test_what_gram_cannot_do_is_refused(tmp_path, capsys, flags, message):
    run = str(tmp_path / "run")
    command = ["train", "--preset", "smoke", "--method", "gram", "--run", run]
    assert main([*command, "--device", "cpu", *flags]) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error
    assert not (tmp_path / "run").exists()


def test_a_rehearsal_does_not_model_it(capsys):
    assert main(["rehearse", "--method", "gram"]) == 2
    assert "rehearse fixed instead" in capsys.readouterr().err


def test_every_preset_has_an_actor_for_gram():
    from horizon_rl.cli.train_flags import default

    for preset in ("smoke", "laptop", "gpu", "paper"):
        cfg = default(["--preset", preset, "--method", "gram"]).cfg
        assert replace(cfg, method="gram").learner.algorithm == "gram"
    flags = ["--method", "gram", "--learner.actor.symmetric", "--run", "run"]
    assert main(["train", *flags]) == 2
    with pytest.raises(InputError, match="divides"):
        replace(preset_cfg("paper", "mlp"), method="gram").make_method(PAPER)


@pytest.mark.slow
def test_smoke_run_from_the_command_line(tmp_path, capsys):
    run = tmp_path / "run"
    command = ["train", "--preset", "smoke", "--method", "gram", "--table", "0"]
    command += ["--learner.gram.calibrate-from", "0.8", "--learner.ppo.num-steps", "8"]
    command += ["--num-envs", "8", "--steps", "8000", "--task.episode-s", "0.4"]
    assert main([*command, "--device", "cpu", "--run", str(run)]) == 0
    said = capsys.readouterr().out
    assert "Method: gram" in said and "from base-mlp" in said
    actor: Any = load_actor(find_checkpoint(str(run)))[0]
    assert actor.history.quantiles.min() > 0.0
