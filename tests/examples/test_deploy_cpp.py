"""The C++ example, built and run where a compiler and onnxruntime's headers are.

Python's onnxruntime brings the library and not its headers. ORT_INCLUDE names their folder;
where it is set, as in CI, nothing is skipped.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="needs the extra onnx")

import onnxruntime as ort

from horizon_rl.cli import main

SOURCE = Path(__file__).parents[2] / "examples" / "deploy.cpp"
HEADER = "onnxruntime_cxx_api.h"
PLACES = ("/usr/include", "/usr/local/include", "/opt/onnxruntime/include")
ENDS = ("", "/onnxruntime")


def find_tools() -> tuple[str, str]:
    """Return compiler and headers' folder; skip without them, unless one is named."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    named = os.environ.get("ORT_INCLUDE")
    places = [named] if named else [p + end for p in PLACES for end in ENDS]
    headers = next((p for p in places if Path(p, HEADER).exists()), None)
    if compiler is None or headers is None:
        said = "needs a C++ compiler and onnxruntime's headers"
        (pytest.fail if named else pytest.skip)(said)
    return compiler, headers


@pytest.mark.parametrize(
    ("named", "outcome"), [("", pytest.skip.Exception), ("x", pytest.fail.Exception)]
)
def test_missing_headers_skip_unless_they_are_named(monkeypatch, named, outcome):
    monkeypatch.setattr(Path, "exists", lambda path: False)
    monkeypatch.setenv("ORT_INCLUDE", named)
    with pytest.raises(outcome, match="onnxruntime's headers"):
        find_tools()


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    compiler, headers = find_tools()
    folder = tmp_path_factory.mktemp("cpp")
    (library,) = Path(ort.__file__).parent.glob("capi/libonnxruntime.so.*.*")
    for name in ("libonnxruntime.so", "libonnxruntime.so.1"):
        (folder / name).symlink_to(library)
    paths = [f"-I{headers}", f"-L{folder}", f"-Wl,-rpath,{folder}"]
    command = [compiler, "-std=c++17", "-O1", str(SOURCE), *paths, "-lonnxruntime"]
    subprocess.run([*command, "-o", str(folder / "deploy")], check=True)
    return folder / "deploy"


def write(rows: np.ndarray) -> str:
    return "".join(" ".join(f"{x:.9g}" for x in row) + "\n" for row in rows)


@pytest.mark.parametrize("name", ["base-mlp", "base"])
def test_targets_are_those_of_python(program, name, tmp_path):
    policy = tmp_path / "policy.onnx"
    assert main(["export", name, str(policy)]) == 0
    rows = np.random.default_rng(0).normal(size=(40, 45)).astype(np.float32)
    # The second episode starts as the first one did: with nothing to remember.
    text = write(rows) + "\n" + write(rows[:5])
    command = [str(program), str(policy)]
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, check=True
    )
    found = np.array([line.split() for line in done.stdout.splitlines()], np.float32)
    assert "every 20 ms" in done.stderr
    np.testing.assert_array_equal(found[40:], found[:5])

    session: Any = ort.InferenceSession(str(policy))
    meta = json.loads(session.get_modelmeta().custom_metadata_map["horizon"])
    pose = np.array(meta["joints"]["default_pose_rad"])
    feed: dict[str, Any] = {
        x.name: np.zeros(x.shape, np.float32) for x in session.get_inputs()
    }
    feed["valid"] = np.zeros(1, np.int64)
    outputs = ["action", "next_cache", "next_valid"]
    for row, target in zip(rows, found, strict=False):
        feed["obs"] = row[None]
        action, feed["cache"], feed["valid"] = session.run(outputs, feed)
        wanted = pose + meta["control"]["action_scale"] * action[0]
        np.testing.assert_allclose(target, wanted, atol=2e-5)


def test_bad_input_is_said(program, tmp_path):
    done = subprocess.run([str(program)], capture_output=True, text=True)
    assert done.returncode == 2 and "usage" in done.stderr
    done = subprocess.run(
        [str(program), str(tmp_path / "none.onnx")], capture_output=True, text=True
    )
    assert done.returncode == 1 and "deploy: " in done.stderr
