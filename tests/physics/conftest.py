"""What the physics tests share."""

from importlib.util import find_spec
from pathlib import Path

import pytest

SHARED = Path(__file__).parents[3] / "shared"

MISSING = [name for name in ("mujoco", "mjbatch", "torch") if find_spec(name) is None]
if MISSING:  # The base install has no simulator.
    collect_ignore_glob = ["test_*.py"]


def pytest_report_header():
    if MISSING:
        return f"physics tests left out: {', '.join(MISSING)} not installed"


@pytest.fixture
def every_physics_step(monkeypatch):
    """Let `step` advance one physics step, so that nothing in between goes unseen."""
    monkeypatch.setattr("horizon_rl.physics.cpu.PHYSICS_STEPS", 1)


@pytest.fixture
def shared():
    """The project's shared folder, which a clone does not have."""
    if not SHARED.is_dir():
        pytest.skip("needs ../shared")
    return SHARED


@pytest.fixture
def in_tmp(tmp_path, monkeypatch):
    """Run elsewhere: MuJoCo writes a log where it meets bad numbers."""
    monkeypatch.chdir(tmp_path)
