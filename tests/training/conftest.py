"""Runs small enough for tests."""

import dataclasses

import pytest

pytest.importorskip("mujoco")
pytest.importorskip("torch")

from horizon_rl.learning import LearnerCfg, MlpCfg, PpoCfg, TransformerCfg
from horizon_rl.task import TaskCfg
from horizon_rl.training import TrainCfg

ACTORS = {
    "mlp": MlpCfg(hidden_dims=(32,)),
    "transformer": TransformerCfg(
        embedding_dim=16, num_heads=2, feedforward_dim=32, window=7
    ),
}


@pytest.fixture
def tiny():
    """Return settings of a run of three segments, two iterations each."""

    def make(policy: str = "mlp", **changes) -> TrainCfg:
        cfg = TrainCfg(
            num_envs=8,
            segment_iterations=2,
            steps=8 * 8 * 6,
            probe_episodes=8,
            task=TaskCfg(episode_s=0.4),
            learner=LearnerCfg(
                actor=ACTORS[policy], ppo=PpoCfg(num_steps=8, num_epochs=2)
            ),
        )
        return dataclasses.replace(cfg, **changes)

    return make
