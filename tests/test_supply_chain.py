"""What is installed is known by version and hash; licences of sources have their texts."""

import re
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PIN = re.compile(
    r"^([\w.-]+)==([\w.+!-]+)((?: \\\n    --hash=sha256:[0-9a-f]{64})*)$", re.M
)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(file: str) -> dict[str, str]:
    """Return the version of every package that a file pins."""
    found = PIN.findall((ROOT / file).read_text())
    return {normal(name): version for name, version, _ in found}


CONSTRAINTS = pins("constraints.txt")


def needed(*extras: str) -> set[str]:
    """Return the packages that extras ask for, other extras of ours included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = {normal(re.split(r"[<>=\[; ]", d)[0]) for d in project["dependencies"]}
    for extra in extras:
        for dependency in project["optional-dependencies"][extra]:
            if ours := re.match(r"horizon-rl\[(.*)\]", dependency):
                found |= needed(*ours[1].split(","))
            else:
                found.add(normal(re.split(r"[<>=\[; ]", dependency)[0]))
    return found


@pytest.mark.parametrize(
    ("lock", "extras"), [("cpu", ["dev"]), ("gpu", ["gpu", "viewer", "onnx"])]
)
def test_lock_has_everything_at_the_pinned_version_with_hashes(lock, extras):
    file = f"locks/{lock}.txt"
    locked = pins(file)
    assert needed(*extras) <= locked.keys()
    for name, version in locked.items():
        pinned = CONSTRAINTS.get(name, version)
        assert version.partition("+")[0] == pinned, f"{file}: {name}"
    text = (ROOT / file).read_text()
    lines = [line for line in text.splitlines() if not line.startswith(("#", "    "))]
    found = PIN.findall(text)
    assert len(found) == len(lines) > 50, "a line that is no pin"
    assert all(hashes for _, _, hashes in found)


def test_editable_install_needs_nothing_that_no_lock_has(tmp_path, monkeypatch):
    build = pytest.importorskip("hatchling.build")
    monkeypatch.setitem(sys.modules, "editables", None)
    monkeypatch.chdir(ROOT)
    assert "editables" not in pins("locks/cpu.txt")
    with zipfile.ZipFile(tmp_path / build.build_editable(str(tmp_path))) as wheel:
        (link,) = (name for name in wheel.namelist() if name.endswith(".pth"))
        assert wheel.read(link).decode().strip() == str(ROOT / "src")


def test_only_the_libraries_of_the_gpu_are_not_among_the_constraints():
    others = pins("locks/gpu.txt").keys() - CONSTRAINTS.keys()
    gpu = ("nvidia-", "cuda-", "triton")
    assert others and all(name.startswith(gpu) for name in others), others
    assert pins("locks/cpu.txt").keys() <= CONSTRAINTS.keys()


def test_every_robots_licence_has_its_text():
    presets = tomllib.loads(
        (ROOT / "src/horizon_rl/robots/presets.toml").read_text("utf-8")
    )
    readme = (ROOT / "LICENSES/README.md").read_text()
    rows = re.findall(r"^\| \[(.+?)\]\(.+?\) \| (.+) \|$", readme, re.M)
    texts = {name: re.findall(r"`(\w+)`", robots) for name, robots in rows}
    assert {p.name for p in (ROOT / "LICENSES").glob("*.txt")} == texts.keys()
    assert {robot for robots in texts.values() for robot in robots} == presets.keys()
    owners = {"Unitree": "Unitree", "ANYbotics": "ANYbotics", "Boston": "Boston"}
    for robot, preset in presets.items():
        mine = [name for name, robots in texts.items() if robot in robots]
        for word, owner in owners.items():
            if word in preset["licence"]:
                assert any(name.startswith(owner) for name in mine), robot
        for kind in ("Apache-2.0", "MPL-2.0"):
            assert (kind in preset["licence"]) == (f"{kind}.txt" in mine), robot
