"""Exported files for tests, each made once."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from short_exports import shorten

NEEDED = ("torch", "mujoco", "rsl_rl", "scipy", "onnxruntime")
if any(find_spec(name) is None for name in NEEDED):
    collect_ignore_glob = ["test_*.py"]  # The base install cannot export.


@pytest.fixture
def random_obs():
    import numpy as np

    return np.random.default_rng(0).normal(size=(8, 5, 45)).astype(np.float32)


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """Return a function that exports a shipped policy once, with flags."""
    from horizon_rl.cli import main

    folder, made = tmp_path_factory.mktemp("exported"), {}

    def export(name: str, *flags: str) -> Path:
        if (name, flags) not in made:
            path = folder / f"{name}-{len(made)}.onnx"
            with pytest.MonkeyPatch.context() as patch:
                shorten(patch)
                assert main(["export", name, str(path), *flags]) == 0
            made[name, flags] = path
        return made[name, flags]

    return export


@pytest.fixture(scope="session")
def go2_xml(tmp_path_factory) -> Path:
    from horizon_rl.policies.deployment import standalone_mjcf

    path = tmp_path_factory.mktemp("robot") / "go2.xml"
    path.write_text(standalone_mjcf("go2"))
    return path
