"""A run of two phases that tests may damage, trained once in a process."""

import shutil
from pathlib import Path

import pytest

from horizon_rl.cli import main


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Path:
    """Train a run that no test changes."""
    pytest.importorskip("torch")
    path = tmp_path_factory.mktemp("trained") / "run"
    args = ["train", "--preset", "smoke", "--run", str(path), "--table", "0"]
    args += ["--device", "cpu", "--steps", "3000", "--task.episode-s", "1"]
    assert main(args) == 0
    return path


@pytest.fixture
def trained_copy(trained, tmp_path) -> Path:
    """Return a copy of it."""
    return Path(shutil.copytree(trained, tmp_path / "run"))
