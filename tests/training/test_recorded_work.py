"""What a GPU replays as graphs is what Python does step by step."""

from typing import Any

import pytest
import torch
from small_runs import tiny
from tape import Tape, Taped

from horizon_rl.domains import paper_catalogue
from horizon_rl.domains.distribution import AtLevels
from horizon_rl.learning import ppo as ppo_module
from horizon_rl.learning import state_tensors
from horizon_rl.training.learner import TorchLearner
from horizon_rl.training.worlds import SimulatedWorlds

PAPER = paper_catalogue()


@pytest.fixture
def taped(monkeypatch):
    """Call it to have tapes where a GPU has graphs."""

    def start():
        monkeypatch.setattr("horizon_rl.task.env.Recorded", Taped)
        monkeypatch.setattr("horizon_rl.learning.ppo.Recorded", Taped)
        monkeypatch.setattr("horizon_rl.learning.steps.Recorded", Taped)
        monkeypatch.setattr(Taped, "num_replays", 0)

    return start


def train(cfg, num_phases=2) -> tuple[SimulatedWorlds, Any, list]:
    worlds = SimulatedWorlds(cfg, PAPER, "cpu")
    learner, figures = TorchLearner(worlds, PAPER), []
    for phase in range(num_phases):
        worlds.begin(phase, AtLevels({}))
        learner.begin(worlds)
        figures += [learner.iterate(worlds).figures for _ in range(cfg.iterations)]
    return worlds, learner.algorithm, figures


def train_and_copy(cfg):
    _, algorithm, figures = train(cfg)
    rewards = algorithm.storage.rewards.clone()
    return figures, {**state_tensors(algorithm), "rewards": rewards}


@pytest.mark.parametrize("policy", ["mlp", "transformer"])
def test_replayed_training_equals_training_step_by_step_to_the_bit(policy, taped):
    cfg = tiny(policy, phase_iterations=5)
    plain_figures, plain = train_and_copy(cfg)
    taped()
    figures, tensors = train_and_copy(cfg)
    # From the fourth iteration on: per step plan, judge, observe, act; 2 minibatches.
    assert Taped.num_replays > 100
    assert figures == plain_figures
    for name, value in plain.items():
        assert torch.equal(tensors[name], value), name


def test_replaying_notices_a_normaliser_that_was_replaced(taped, monkeypatch):
    cfg = tiny(phase_iterations=5)
    _, plain = train_and_copy(cfg)
    taped()
    monkeypatch.setattr(
        ppo_module,
        "update_normalizer",
        lambda model, obs: model.update_normalization(obs),
    )
    _, tensors = train_and_copy(cfg)
    assert any(not torch.equal(tensors[name], plain[name]) for name in plain)


def test_tape_refuses_what_waits_for_the_device():
    x = torch.ones(3)
    for wait in (lambda: float(x[0]), lambda: x[x > 0], lambda: x[[0, 2]]):
        with pytest.raises(RuntimeError, match="no graph can hold it"), Tape():
            wait()


def test_restored_weights_reach_what_was_recorded(taped):
    taped()
    cfg = tiny("transformer", phase_iterations=5)
    worlds, algorithm, _ = train(cfg, num_phases=1)
    with torch.no_grad():
        for param in algorithm.actor.parameters():
            param.zero_()
    algorithm.forget()
    observations = worlds.env.get_observations()
    before = Taped.num_replays
    algorithm.act(observations)
    assert Taped.num_replays == before + 1
    assert (algorithm.storage.distribution_params[0][0] == 0.0).all()
