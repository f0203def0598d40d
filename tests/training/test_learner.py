"""The learner in our worlds."""

import numpy as np
from small_runs import STORM, tiny

from horizon_rl.domains.distribution import AtLevels
from horizon_rl.learning import state_tensors
from horizon_rl.physics import CpuBackend
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
