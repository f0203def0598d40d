"""Evaluations that show as well that a command works, in a fraction of the time."""

from collections.abc import Callable, Iterator

import pytest


@pytest.fixture
def last_only(monkeypatch) -> Iterator[Callable[[float], None]]:
    """Say how many seconds an episode lasts unless told."""
    pytest.importorskip("mujoco")
    from horizon_rl.task import TaskCfg
    from horizon_rl.training.presets import preset_cfg

    def shorten(seconds: float) -> None:
        monkeypatch.setitem(TaskCfg.__init__.__kwdefaults__, "episode_s", seconds)
        preset_cfg.cache_clear()

    yield shorten
    # Presets are made from that default, and kept: the next test would have ours.
    preset_cfg.cache_clear()


@pytest.fixture
def short_evaluations(last_only, monkeypatch) -> None:
    """Let episodes last a second, in two worlds."""
    last_only(1.0)
    monkeypatch.setattr("horizon_rl.evaluation.evaluate.CHUNK", 2)
