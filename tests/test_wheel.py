"""The wheel holds all that is needed, and works where there is no checkout."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from waiting import PATIENCE_S

ROOT = Path(__file__).parent.parent
CODE = """
import horizon_rl as hz
from horizon_rl.cli import main

print(hz.__file__)
print(hz.model_names())
assert main(["eval", "core", "--suite", "mine.toml"]) == 0
few = ("--episodes", "1", "--severity", "0", "--columns", "none", "--no-stand")
assert main(["eval", "stand", *few]) == 0
"""


def run(*command: object, cwd: Path, **env: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | env,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    options = ("--no-deps", "--no-build-isolation", "--quiet", "-w", folder)
    run(sys.executable, "-m", "pip", "wheel", *options, ROOT, cwd=folder)
    (found,) = folder.glob("horizon_rl-*.whl")
    return found


@pytest.mark.slow
def test_wheel_holds_what_the_package_reads(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    package = ROOT / "src" / "horizon_rl"
    tracked = run("git", "ls-files", package, cwd=ROOT).split()
    expected = {str(Path(name).relative_to("src")) for name in tracked}
    assert expected and not expected - set(names)
    assert not [name for name in names if name.startswith(("tests", "docs", "logs"))]
    texts = {Path(name).name for name in names if ".dist-info/licenses/" in name}
    assert texts >= {"LICENSE", *(p.name for p in (ROOT / "LICENSES").iterdir())}


@pytest.mark.slow
def test_wheel_works_outside_the_checkout(wheel, tmp_path):
    pytest.importorskip("mujoco")
    pytest.importorskip("torch")
    place = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(place)
    env = {"PYTHONPATH": str(place), "HORIZON_CACHE": str(tmp_path / "cache")}
    suite = "episodes = 1\n[task]\nepisode_s = 0.1\n[columns]\na = {}\n"
    (tmp_path / "mine.toml").write_text(suite)

    def python(*args: str) -> str:
        return run(sys.executable, *args, cwd=tmp_path, **env)

    where, models, said = python("-c", CODE).split("\n", 2)
    assert where.startswith(str(place)) and "core" in models
    assert "core in mine" in said and "ood (dev) at severity 0" in said
    assert "mass" in python("-m", "horizon_rl", "domains")


@pytest.mark.slow
def test_wheel_installs_in_a_clean_environment(wheel, tmp_path):
    """Needs a package index: the base install, with its pinned dependencies."""
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    pinned = ("-c", ROOT / "constraints.txt", "--quiet")
    run(python, "-m", "pip", "install", *pinned, wheel, cwd=tmp_path)
    horizon = tmp_path / "env" / "bin" / "horizon"
    assert run(horizon, "--version", cwd=tmp_path).startswith("horizon-rl ")
    assert "Frontiers" in run(horizon, "rehearse", "--pace", "0", cwd=tmp_path)
    code = "import horizon_rl, sys; print('torch' in sys.modules)"
    assert run(python, "-c", code, cwd=tmp_path) == "False\n"
    # What is not there is named, with what to install.
    refused = subprocess.run(
        [horizon, "eval", "stand"], cwd=tmp_path, capture_output=True, text=True
    )
    assert refused.returncode == 2 and "-e '.[train]'" in refused.stderr
