"""What a GPU replays as graphs is what Python does step by step."""

from typing import Any

import pytest
import torch
from small_runs import tiny
from tape import Tape, Taped

from horizon_rl.domains import paper_catalogue
from horizon_rl.learning import ppo as ppo_module
from horizon_rl.learning import state_tensors

PAPER = paper_catalogue()


@pytest.fixture
def taped(monkeypatch):
    """Call it to have tapes where a GPU has graphs."""

    def start():
        monkeypatch.setattr("horizon_rl.task.env.Recorded", Taped)
        monkeypatch.setattr("horizon_rl.learning.ppo.Recorded", Taped)
        monkeypatch.setattr("horizon_rl.learning.update.Recorded", Taped)
        monkeypatch.setattr(Taped, "num_replays", 0)

    return start


def train(cfg):
    trainer = Trainer(cfg, PAPER, device="cpu")
    figures = [i.figures for k in range(2) for i in trainer.run_phase(k, {})]
    learner: Any = trainer.learner
    rewards = learner.storage.rewards.clone()
    return figures, {**state_tensors(learner), "rewards": rewards}


@pytest.mark.parametrize("policy", ["mlp", "transformer"])
def test_replayed_training_equals_training_step_by_step_to_the_bit(policy, taped):
    cfg = tiny(policy, phase_iterations=5)
    plain_figures, plain = train(cfg)
    taped()
    figures, tensors = train(cfg)
    # From the fourth iteration on: per step plan, judge, observe, act; 2 minibatches.
    assert Taped.num_replays > 100
    assert figures == plain_figures
    for name, value in plain.items():
        assert torch.equal(tensors[name], value), name


def test_replaying_notices_a_normaliser_that_was_replaced(taped, monkeypatch):
    cfg = tiny(phase_iterations=5)
    _, plain = train(cfg)
    taped()
    monkeypatch.setattr(
        ppo_module,
        "_update_normalizer",
        lambda model, obs: model.update_normalization(obs),
    )
    _, tensors = train(cfg)
    assert any(not torch.equal(tensors[name], plain[name]) for name in plain)


def test_tape_refuses_what_waits_for_the_device():
    x = torch.ones(3)
    for wait in (lambda: float(x[0]), lambda: x[x > 0], lambda: x[[0, 2]]):
        with pytest.raises(RuntimeError, match="no graph can hold it"), Tape():
            wait()


def test_restored_weights_reach_what_was_recorded(taped):
    taped()
    trainer = Trainer(tiny("transformer", phase_iterations=5), PAPER, device="cpu")
    list(trainer.run_phase(0, {}))
    learner: Any = trainer.learner
    with torch.no_grad():
        for param in learner.actor.parameters():
            param.zero_()
    learner.forget()
    observations = trainer.env.get_observations()
    before = Taped.num_replays
    learner.act(observations)
    assert Taped.num_replays == before + 1
    assert (learner.storage.distribution_params[0][0] == 0.0).all()
