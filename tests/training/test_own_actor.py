"""An algorithm with an actor of its own: trained, saved, and loaded as a policy."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from small_runs import create, finish, tiny
from tensordict import TensorDict

from horizon_rl.learning import Actor, Ppo, register_algorithm
from horizon_rl.learning.algorithm import ALGORITHMS
from horizon_rl.learning.networks import PrivilegedCritic
from horizon_rl.learning.storage import SequenceStorage
from horizon_rl.learning.update import GradientSteps
from horizon_rl.policies.learned import load_actor
from horizon_rl.policies.onnx_graph import to_onnx
from horizon_rl.policies.shipped import find_checkpoint
from horizon_rl.support.errors import InputError


class GatedActor(Actor):
    """An MLP that learns how much of each observation to read."""

    kind = "gated"

    def __init__(self, obs, num_actions, cfg):
        super().__init__(obs, num_actions, cfg, cfg.hidden_dims, cfg.activation)
        self.gates = torch.nn.Parameter(torch.ones(self.num_inputs))

    def features(self, raw):
        return self.gates * super().features(raw)


def build_gated(observations, num_actions, cfg, num_steps=24) -> GatedActor:
    return GatedActor(observations, num_actions, cfg.actor)


@register_algorithm("gated", build_gated)
def build_gated_ppo(observations, num_actions, num_envs, cfg, device, ranks) -> Ppo:
    actor = build_gated(observations, num_actions, cfg)
    critic = PrivilegedCritic(observations, cfg.critic)
    storage = SequenceStorage(
        num_envs, observations, num_actions, cfg.ppo, False, device
    )
    return Ppo(GradientSteps(actor, critic, storage, device, ranks))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "run"
    cfg = tiny("mlp", max_phases=1)
    learner = replace(cfg.learner, algorithm="gated")
    run = create(replace(cfg, learner=learner), path)
    finish(run)
    return run, find_checkpoint(str(path))


def test_its_policy_is_loaded_from_its_checkpoint(trained):
    run, checkpoint = trained
    actor, _, record = load_actor(checkpoint)
    assert isinstance(actor, GatedActor)
    assert record.config["learner"]["algorithm"] == "gated"
    assert (actor.gates != 1.0).any()  # It has learnt.
    obs: Any = TensorDict({"actor": torch.randn(5, 45)}, [5])
    with torch.no_grad():
        assert torch.equal(actor(obs), run.learner.algorithm.actor.eval()(obs))


def test_who_has_not_registered_it_is_told_to(trained, monkeypatch):
    monkeypatch.delitem(ALGORITHMS, "gated")
    with pytest.raises(InputError, match="'gated' is not registered: import the mod"):
        load_actor(trained[1])


def test_a_kind_that_nobody_can_export_is_refused(trained):
    with pytest.raises(InputError, match="unknown kind of actor 'gated'.*mlp"):
        to_onnx(load_actor(trained[1])[0])
