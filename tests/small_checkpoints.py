"""Checkpoints of random weights, small enough for tests."""

from pathlib import Path
from typing import Any

import pytest

ACTORS = {
    "mlp": {"hidden_dims": (32,)},
    # A window that is shorter than the tests' episodes, so that it slides.
    "transformer": {
        "embedding_dim": 16,
        "num_heads": 2,
        "feedforward_dim": 32,
        "window": 4,
    },
}
ACTORS |= {f"symmetric {k}": {**v, "symmetric": True} for k, v in ACTORS.items()}


@pytest.fixture
def make_checkpoint(tmp_path):
    """Return a function that writes a checkpoint of random weights."""
    import torch
    from tensordict import TensorDict

    from horizon_rl.learning import LearnerCfg, MlpCfg, TransformerCfg, build_actor
    from horizon_rl.learning.checkpoint import CheckpointRecord, fill_checkpoint
    from horizon_rl.support.durable import write_directory
    from horizon_rl.support.records import encode
    from horizon_rl.task import TaskCfg

    def make(
        kind: str = "mlp", seed=0, width=45, action_scale=0.25, path: Path | None = None
    ) -> Path:
        is_mlp = kind.endswith("mlp")
        cls = MlpCfg if is_mlp else TransformerCfg
        cfg = LearnerCfg(actor=cls(**ACTORS[kind]))
        torch.manual_seed(seed)
        obs = TensorDict({"actor": torch.zeros(1, width)}, [1])
        actor: Any = build_actor(obs, 12, cfg.actor)
        actor.obs_normalizer.update(1.0 + 2.0 * torch.randn(100, width))
        if not is_mlp:  # Its head is zero to begin with.
            torch.nn.init.normal_(actor.mlp.weight, std=0.3)
        task = TaskCfg(action_scale=action_scale)
        record = CheckpointRecord(
            numbers={},
            counters={},
            seed=seed,
            config={"learner": encode(cfg), "task": encode(task)},
            catalogue={},
            levels={},
        )
        path = path or tmp_path / f"{kind}-{seed}-{width}-{action_scale}"
        tensors = {f"actor.{name}": x for name, x in actor.state_dict().items()}
        write_directory(path, lambda aside: fill_checkpoint(aside, tensors, record))
        return path

    return make
