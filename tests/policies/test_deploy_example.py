"""The example walks Go2 from the exported file alone."""

import json
import re
import runpy
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from horizon_rl.domains import paper_catalogue
from horizon_rl.physics import CpuBackend
from horizon_rl.policies.deployment import nominal_pool
from horizon_rl.policies.learned import LearnedPolicy, load_actor
from horizon_rl.policies.shipped import model_path
from horizon_rl.robots import build_robot, load_preset
from horizon_rl.task import NoiseCfg, Scenarios, TaskCfg, VelocityEnv
from waiting import PATIENCE_S

EXAMPLE = Path(__file__).parents[2] / "examples" / "deploy.py"

ALONE = """
import runpy, sys
sys.modules.update({"horizon_rl": None, "torch": None})  # Importing them fails.
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""

NUMBER = r"(-?\d+\.\d+)"


@dataclass(frozen=True)
class Walk:
    """What the example prints."""

    forward: float
    left: float
    turned: float
    error: float
    yaw_error: float
    height: float
    seconds: float
    upright: bool


def read(text: str) -> Walk:
    found = [float(x) for x in re.findall(NUMBER, text)]
    return Walk(*found, upright="upright" in text)


def run_example(*args: object) -> Walk:
    """Run the example where horizon_rl cannot be imported."""
    command = [sys.executable, "-c", ALONE, EXAMPLE, *args]
    done = subprocess.run(
        [str(x) for x in command], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    return read(done.stdout)


FORWARD, LEFT, TURN = (0.5, 0.0, 0.0), (0.0, 0.5, 0.0), (0.0, 0.0, 0.8)


@pytest.mark.parametrize(
    ("name", "command"),
    [
        pytest.param("base", FORWARD, marks=pytest.mark.slow),
        ("base-mlp", FORWARD),
        ("base-mlp", LEFT),
        ("base-mlp", TURN),
        pytest.param("core-mlp", FORWARD, marks=pytest.mark.slow),
    ],
)
def test_exported_policy_walks_go2_for_20_s(name, command, exported, go2_xml):
    walk = run_example(exported(name), go2_xml, "--command", *command)
    assert walk.upright
    assert walk.seconds == 20.0
    assert 0.25 < walk.height < 0.4
    assert walk.error < 0.15
    assert walk.yaw_error < 0.15
    # `base` walks 7.49 m of 10: docs/deploy.md.
    short = 2.6 if name == "base" else 2.5
    way = np.array([walk.forward, walk.left, walk.turned])
    np.testing.assert_allclose(way, 20.0 * np.array(command), atol=short)


def test_a_fall_is_told(exported, go2_xml, tmp_path):
    text = go2_xml.read_text().replace('mass="6.921"', 'mass="80"')
    heavy = tmp_path / "heavy.xml"
    heavy.write_text(text)
    walk = run_example(exported("base-mlp"), heavy)
    assert not walk.upright
    assert walk.seconds < 20.0


def test_joints_are_found_by_name_in_whatever_order(exported, go2_xml, tmp_path):
    tree = ElementTree.parse(go2_xml)
    root = tree.getroot()
    for parent in (root.find("worldbody/body"), root.find("actuator")):
        assert parent is not None
        moving = [x for x in parent if x.tag in ("body", "general")]
        for x in moving:
            parent.remove(x)
        parent.extend(reversed(moving))
    assert moving[0].get("name") == "FL_hip"
    root.remove(root.find("keyframe"))  # pyright: ignore[reportArgumentType]
    tree.write(tmp_path / "reversed.xml")
    walk = run_example(exported("base-mlp"), tmp_path / "reversed.xml")
    ordered = run_example(exported("base-mlp"), go2_xml)
    assert walk.upright
    assert walk.error < 0.1
    # Its physics sums in another order: close, but not to the bit.
    assert walk.forward == pytest.approx(ordered.forward, abs=0.5)


def test_joints_that_turn_the_other_way_are_turned(exported, go2_xml, tmp_path):
    # A robot of one's own: its hips' axes point backwards, as its metadata says.
    text = go2_xml.read_text().replace('axis="1 0 0"', 'axis="-1 0 0"')
    # A pose of knees half bent is then assumed.
    text = re.sub(r"<size[^>]*>|<keyframe>.*</keyframe>", "", text, flags=re.DOTALL)
    path = tmp_path / "mine.xml"
    path.write_text(text)
    policy = exported("base-mlp", "--robot", str(path))
    entry, _ = onnx.load(policy).metadata_props
    assert json.loads(entry.value)["joints"]["sign"][0] == -1.0
    walk = run_example(policy, path)
    assert walk.upright
    assert walk.error < 0.15


def test_damaged_policy_does_not_walk(exported, go2_xml, tmp_path):
    content = exported("base-mlp").read_bytes()
    file = tmp_path / "p.onnx"
    file.write_bytes(content.replace(b'"action_scale":0.25', b'"action_scale":0.95'))
    assert file.read_bytes() != content
    command = [sys.executable, str(EXAMPLE), str(file), str(go2_xml)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "the policy's file is damaged" in done.stderr


def test_missing_file_is_named(go2_xml, tmp_path):
    command = [sys.executable, str(EXAMPLE), str(tmp_path / "no.onnx"), str(go2_xml)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert f"there is no file {tmp_path / 'no.onnx'}" in done.stderr


def test_robot_without_a_floor_is_refused(exported, go2_xml, tmp_path):
    floor = re.compile(r'<geom name="floor"[^>]*/>')
    path = tmp_path / "alone.xml"
    path.write_text(floor.sub("", go2_xml.read_text()))
    command = [sys.executable, str(EXAMPLE), str(exported("base-mlp")), str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and f"{path} has no floor" in done.stderr


def with_motors(source: Path, path: Path, torque: float, speed: float) -> Path:
    """Copy a file with other limits in its metadata."""
    model = onnx.load(source)
    entry, checksum = model.metadata_props
    meta = json.loads(entry.value)
    meta["joints"]["torque_limit_nm"] = [torque] * 12
    meta["joints"]["velocity_limit_rad_s"] = [speed] * 12
    entry.value = json.dumps(meta)
    model.metadata_props.remove(checksum)  # It was of other bytes.
    onnx.save(model, path)
    return path


@pytest.mark.parametrize(("torque", "speed"), [(40.0, 30.0), (15.0, 5.0)])
def test_example_moves_as_the_environment_does(
    torque, speed, exported, go2_xml, tmp_path, monkeypatch
):
    file = with_motors(exported("base"), tmp_path / "p.onnx", torque, speed)
    arguments = [str(EXAMPLE), str(file), str(go2_xml), "--seconds", "1"]
    monkeypatch.setattr(sys, "argv", arguments)
    example = np.array(runpy.run_path(str(EXAMPLE))["moved"])

    robot = build_robot(load_preset("go2"))
    pool = nominal_pool(robot, paper_catalogue(), "scaled")
    start = pool.start_qpos.copy()
    start[0, 2:7] = robot.standing_height_m, 1.0, 0.0, 0.0, 0.0
    pool = replace(
        pool,
        start_qpos=start,
        fields=pool.fields | {"geom_friction": robot.model.geom_friction[None]},
        effort=np.full((1, 12), torque),
        velocity_limit=np.full((1, 12), speed),
    )
    quiet = NoiseCfg(angular_velocity=0, gravity=0, joint_position=0, joint_velocity=0)
    env = VelocityEnv(CpuBackend(robot, 1), TaskCfg(noise=quiet))
    commands = np.array([[FORWARD, FORWARD]])
    never = np.full(pool.push_velocity.shape[:2], 10_000)
    policy = LearnedPolicy(load_actor(model_path("base"))[0])
    seen, observations = [], env.begin(Scenarios(pool, commands, never), seed=0)
    for _ in range(50):
        with torch.no_grad():
            observations, *_ = env.step(policy.act(observations))
        critic = observations["critic"][0].numpy()
        seen.append([*critic[45:47], critic[2]])
    # Sooner or later rounding makes two walks of one.
    np.testing.assert_allclose(example, seen, atol=1e-4)


@pytest.mark.slow
def test_example_can_be_filmed(exported, go2_xml, tmp_path, monkeypatch):
    from horizon_rl.robots.picture import choose_gl
    from horizon_rl.support.errors import InputError

    imageio = pytest.importorskip("imageio.v3")
    try:
        monkeypatch.setenv("MUJOCO_GL", choose_gl())
    except InputError as error:
        pytest.skip(str(error))
    film = tmp_path / "walk.gif"
    args = ("--seconds", 1, "--video", film)
    run_example(exported("base-mlp"), go2_xml, *args)
    frames = imageio.imread(film)
    assert len(frames) == 25 and frames.shape[1:3] == (368, 640)
    assert frames[5].std() > 5.0
