"""Evaluations that show as well that a command works, in a fraction of the time."""

import pytest


@pytest.fixture
def short_evaluations(monkeypatch) -> None:
    """Let episodes last a second, in two worlds."""
    pytest.importorskip("mujoco")
    from horizon_rl.task import TaskCfg

    monkeypatch.setitem(TaskCfg.__init__.__kwdefaults__, "episode_s", 1.0)
    monkeypatch.setattr("horizon_rl.evaluation.evaluate.CHUNK", 2)
