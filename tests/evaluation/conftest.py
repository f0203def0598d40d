"""Suites, checkpoints and caches small enough for tests."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

NEEDED = ("torch", "mujoco", "rsl_rl", "scipy", "onnxruntime")
MISSING = [name for name in NEEDED if find_spec(name) is None]
if MISSING:  # The base install cannot evaluate.
    collect_ignore_glob = [
        *("test_suite*.py", "test_policies.py", "test_evaluate.py"),
        *("test_explain.py", "test_statics.py", "test_kept_results.py"),
    ]

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

SHORT = """
episodes = 6
[task]
episode_s = 0.2
[columns]
plain = {}
heavy.parameters.mass.scale = [2.0, 4.0]
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch) -> Path:
    """Keep away from the user's results."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("HORIZON_CACHE", str(folder))
    return folder


@pytest.fixture
def make_suite(tmp_path):
    """Return a function that reads a suite from TOML text."""
    from horizon_rl.evaluation.suite_file import load_suite

    def make(text: str = SHORT, **options):
        file = tmp_path / "mine.toml"
        file.write_text(text)
        return load_suite(str(file), **options)

    return make


@pytest.fixture
def make_checkpoint(tmp_path):
    """Return a function that writes a checkpoint of random weights."""
    import torch
    from tensordict import TensorDict

    from horizon_rl.learning import LearnerCfg, MlpCfg, TransformerCfg, build_actor
    from horizon_rl.learning.checkpoint import CheckpointRecord, save_checkpoint
    from horizon_rl.support.records import encode
    from horizon_rl.task import TaskCfg

    def make(
        kind: str = "mlp", seed=0, width=45, action_scale=0.25, path: Path | None = None
    ) -> Path:
        cls = MlpCfg if kind == "mlp" else TransformerCfg
        cfg = LearnerCfg(actor=cls(**ACTORS[kind]))
        torch.manual_seed(seed)
        obs = TensorDict({"actor": torch.zeros(1, width)}, [1])
        actor: Any = build_actor(obs, 12, cfg.actor)
        actor.obs_normalizer.update(1.0 + 2.0 * torch.randn(100, width))
        if kind == "transformer":  # Its head is zero to begin with.
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
        save_checkpoint(path, tensors, record)
        return path

    return make


@pytest.fixture
def run():
    """Return a function that evaluates, keeping nothing unless given a cache."""
    from horizon_rl.evaluation.array_cache import ArrayCache
    from horizon_rl.evaluation.evaluate import Evaluation, Evaluator
    from horizon_rl.policies.load import load_policy

    def evaluate(policy, suite, n=None, cache=None, threads=1, **options) -> Evaluation:
        if isinstance(policy, str | Path):
            policy = load_policy(str(policy))
        evaluator = Evaluator(cache or ArrayCache(None), "cpu", threads)
        return evaluator.evaluate(policy, suite, n, **options)

    return evaluate


@pytest.fixture
def small_chunk(monkeypatch):
    from horizon_rl.evaluation import evaluate

    monkeypatch.setattr(evaluate, "CHUNK", 4)
