"""Suites, checkpoints and caches small enough for tests."""

from importlib.util import find_spec
from pathlib import Path

import pytest

NEEDED = ("torch", "mujoco", "rsl_rl", "scipy", "onnxruntime")
MISSING = [name for name in NEEDED if find_spec(name) is None]
if MISSING:  # The base install cannot evaluate.
    collect_ignore_glob = [
        *("test_suite*.py", "test_evaluate.py", "test_explain.py", "test_curve.py"),
        *("test_statics.py", "test_momentum.py", "test_array_cache.py"),
        "test_lanes.py",
    ]

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

    monkeypatch.setattr(evaluate, "CHUNK", 8)
    monkeypatch.setattr(evaluate, "BLOCK", 4)
    monkeypatch.setattr(evaluate, "SHARED_BLOCK", 4)
