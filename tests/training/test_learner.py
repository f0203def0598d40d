"""The learner in our worlds."""

import numpy as np
import torch
from small_runs import STORM, tiny

from horizon_rl.domains.distribution import AtLevels
from horizon_rl.learning import state_tensors
from horizon_rl.physics import CpuBackend
from horizon_rl.task import RewardCfg
from horizon_rl.training.learner import TorchLearner
from horizon_rl.training.worlds import SimulatedWorlds


def test_nan_in_one_world_does_not_reach_the_weights():
    worlds = SimulatedWorlds(tiny(), STORM, "cpu")
    learner = TorchLearner(worlds, STORM)
    worlds.begin(0, AtLevels({}))
    learner.begin(worlds)
    learner.iterate(worlds)
    backend = worlds.env.backend
    assert isinstance(backend, CpuBackend)
    backend._batch.bind("qvel")[3] = np.nan
    assert learner.iterate(worlds).unhealthy == 1
    assert all(t.isfinite().all() for t in state_tensors(learner.algorithm).values())
    assert backend.counters.unhealthy == 1


def test_rewards_are_those_of_the_training_worlds():
    def reward(weight: float) -> torch.Tensor:
        cfg = tiny(rewards=RewardCfg(linear_velocity=weight))
        worlds = SimulatedWorlds(cfg, STORM, "cpu")
        worlds.begin(0, AtLevels({}))
        return worlds.env.step(torch.zeros(worlds.env.num_envs, 12))[1]

    assert (reward(2.0) > reward(1.0)).all()
