"""What `horizon export` writes, and when it refuses to."""

import json
import sys
from typing import Any

import mujoco
import numpy as np
import onnxruntime as ort
import pytest
import torch

from horizon_rl.cli import main
from horizon_rl.domains import Catalogue, paper_catalogue
from horizon_rl.learning.checkpoint import load_checkpoint
from horizon_rl.policies import deployment
from horizon_rl.policies.deployment import nominal_pool, standalone_mjcf
from horizon_rl.policies.learned import load_actor
from horizon_rl.policies.load import load_policy
from horizon_rl.policies.metadata import describe_robot
from horizon_rl.policies.onnx_graph import METADATA, to_onnx
from horizon_rl.policies.shipped import model_path
from horizon_rl.robots import (
    JOINT_NAMES,
    build_robot,
    load_body,
    load_mjcf,
    load_preset,
)
from horizon_rl.support.errors import InputError


def read_metadata(path):
    session = ort.InferenceSession(str(path))
    return json.loads(session.get_modelmeta().custom_metadata_map[METADATA])


def test_export_tells_what_it_found(tmp_path, capsys):
    path = tmp_path / "p.onnx"
    assert main(["export", "core-mlp", str(path), "--mjcf", f"{tmp_path}/go2.xml"]) == 0
    said = capsys.readouterr().out
    assert "in       obs [1, 45], cache [1, 1], valid [1]" in said
    assert "out      action [1, 12], next_cache [1, 1], next_valid [1]" in said
    assert "1000 steps against torch: largest difference" in said
    assert "levels   actuation 0.45" in said
    assert "latency  0." in said
    assert sorted(p.name for p in tmp_path.iterdir()) == ["go2.xml", "p.onnx"]


def test_torque_that_the_robot_lacks_is_said_and_so_is_what_comes_next(
    tmp_path, capsys, short_exports
):
    path, xml = tmp_path / "p.onnx", tmp_path / "go2.xml"
    assert main(["export", "core-mlp", str(path), "--mjcf", str(xml)]) == 0
    out, err = capsys.readouterr()
    assert f"next     python examples/deploy.py {path} {xml}" in out
    assert "up to 40 N m where go2's own motors have 23.7" in err
    assert main(["export", "core-mlp", str(path), "--motors", "own"]) == 0
    out, err = capsys.readouterr()
    assert f"next     horizon eval {path} --episodes 64" in out and err == ""


def test_policy_is_called_by_its_folder_wherever_one_stands(
    tmp_path, monkeypatch, short_exports
):
    monkeypatch.chdir(model_path("base-mlp"))
    assert main(["export", ".", f"{tmp_path}/p.onnx"]) == 0
    assert read_metadata(tmp_path / "p.onnx")["name"] == "base-mlp"


def test_transformer_keeps_its_window(exported):
    path = exported("base")
    shapes = {x.name: x.shape for x in ort.InferenceSession(str(path)).get_inputs()}
    assert shapes == {"obs": [1, 45], "cache": [1, 1, 2, 8, 127, 16], "valid": [1]}
    assert read_metadata(path)["window"] == 127


def test_observation_is_described_without_gaps(exported):
    terms = read_metadata(exported("base-mlp"))["observation"]
    stops = [0, *(term["stop"] for term in terms)]
    assert [term["start"] for term in terms] == stops[:-1]
    assert stops[-1] == 45
    noise = {term["name"]: term["noise"] for term in terms}
    assert noise["joint_velocity"] == 1.5
    assert noise["command"] == 0.0


def test_metadata_holds_joints_motors_and_record(exported):
    meta = read_metadata(exported("core-mlp"))
    joints, training = meta["joints"], meta["training"]
    assert joints["names"] == list(JOINT_NAMES)
    assert joints["default_pose_rad"][:3] == [0.1, 0.8, -1.5]
    # The middle of the paper's baseline ranges, on Go2.
    assert joints["stiffness_nm_rad"] == pytest.approx([40.0] * 12)
    assert joints["damping_nm_s_rad"] == pytest.approx([1.0] * 12)
    assert joints["torque_limit_nm"] == pytest.approx([40.0] * 12)
    assert joints["velocity_limit_rad_s"] == pytest.approx([30.0] * 12)
    assert meta["robot"]["own_torque_limit_nm"][:3] == pytest.approx(
        load_preset("go2").torque_limit_nm
    )
    assert (meta["control"]["rate_hz"], meta["control"]["action_scale"]) == (50.0, 0.25)
    record = load_checkpoint(model_path("core-mlp")).record
    assert training["levels"] == record.levels
    assert training["weights_sha256"] == record.weights_sha256
    assert training["method"] == "horizon"
    # Half way and more from 0.9..1.1 to 0.4..5.
    low, high = training["ranges"]["mass.scale"]
    level = record.levels["mass"]
    assert (low, high) == pytest.approx((0.9 - 0.5 * level, 1.1 + 3.9 * level))


def test_motors_are_scaled_to_the_body_or_its_own():
    def joints(name, motors):
        robot = build_robot(load_preset(name))
        pool = nominal_pool(robot, paper_catalogue(), motors)
        return describe_robot(pool, motors)["joints"]

    b2, go2 = load_preset("b2"), load_preset("go2")
    mass = b2.body_mass_kg / go2.body_mass_kg
    length = b2.leg_length_m / go2.leg_length_m
    scaled = joints("b2", "scaled")
    assert scaled["stiffness_nm_rad"][0] == pytest.approx(40.0 * mass * length)
    assert scaled["velocity_limit_rad_s"][0] == pytest.approx(30.0 * length**-0.5)
    assert joints("b2", "own")["torque_limit_nm"][:3] == pytest.approx(
        b2.torque_limit_nm
    )


def test_catalogue_without_motors_leaves_the_robot_its_own():
    groups = (group for group in paper_catalogue().groups if group.name != "actuation")
    robot = build_robot(load_preset("go2"))
    pool = nominal_pool(robot, Catalogue(tuple(groups)), "scaled")
    assert pool.effort[0] == pytest.approx(robot.torque_limit_nm)


@pytest.mark.parametrize("spoil", [1e-2, float("nan")])
def test_file_that_acts_otherwise_is_not_written(
    spoil, tmp_path, monkeypatch, capsys, short_exports
):
    def spoilt(actor, metadata):
        other: Any = load_actor(model_path("base-mlp"))[0]
        with torch.no_grad():
            other.mlp[0].weight[0, 0] += spoil
        return to_onnx(other, metadata)

    monkeypatch.setattr(deployment, "to_onnx", spoilt)
    path = tmp_path / "p.onnx"
    path.write_text("what stood there")
    assert main(["export", "base-mlp", str(path)]) == 1
    assert "Nothing was written" in capsys.readouterr().err
    assert path.read_text() == "what stood there"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["core-mpl", "p.onnx"],
            "no checkpoint 'core-mpl': did you mean 'core-mlp'? Accepted:",
        ),
        (["empty", "p.onnx"], "no checkpoint 'empty'. Accepted:"),
        (["core-mlp", "p.onx"], "must end in .onnx"),
        (["core-mlp", "none/p.onnx"], "no folder none"),
        (["core-mlp", "folder.onnx"], "a folder, not a file"),
        (["core-mlp", "p.onnx", "--robot", "go3"], "did you mean 'go2'?"),
        (["core-mlp", "p.onnx", "--robot", "none.xml"], "no such file"),
        (["core-mlp", "p.onnx", "--mjcf", "go2.txt"], "must end in .xml"),
        (
            ["core-mlp", "p.onnx", "--robot", "mine.xml", "--mjcf", "x.xml"],
            "mine.xml is a file already",
        ),
    ],
)
def test_bad_input_is_refused(args, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.onnx").mkdir()
    (tmp_path / "empty").mkdir()
    assert main(["export", *args]) == 2
    assert message in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty", "folder.onnx"]


def test_missing_onnxruntime_names_the_extra(tmp_path, monkeypatch, capsys):
    for name in [n for n in sys.modules if n.startswith("horizon_rl.policies")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "horizon_rl.cli.export", raising=False)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert main(["export", "core-mlp", str(tmp_path / "p.onnx")]) == 2
    assert "pip install -c constraints.txt -e '.[onnx]'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["go2", "go2+payload-3kg"])
def test_standalone_model_is_the_robot(name):
    model = mujoco.MjModel.from_xml_string(standalone_mjcf(name))
    robot = build_robot(load_body(name)).model
    for field in (
        *("body_mass", "body_inertia", "body_pos", "dof_armature", "geom_size"),
        *("geom_friction", "geom_contype", "geom_conaffinity", "jnt_range", "key_qpos"),
    ):
        # To the six digits that MuJoCo writes.
        expected = getattr(robot, field)
        np.testing.assert_allclose(getattr(model, field), expected, atol=1e-5)
    assert [model.actuator(i).name for i in range(12)] == list(JOINT_NAMES)


def test_standalone_model_can_be_imported_again(tmp_path):
    path = tmp_path / "go2.xml"
    path.write_text(standalone_mjcf("go2"))
    again, robot = load_mjcf(path), build_robot(load_preset("go2"))
    assert again.name == "go2"
    assert again.body_mass_kg == pytest.approx(robot.body_mass_kg)
    assert again.default_pose_rad == pytest.approx(robot.default_pose_rad)
    assert again.standing_height_m == pytest.approx(robot.standing_height_m, abs=1e-5)


def test_evaluation_takes_the_action_scale_from_the_file(exported, tmp_path):
    assert load_policy(str(exported("base-mlp"))).action_scale == 0.25
    actor = load_actor(model_path("base-mlp"))[0]
    path = tmp_path / "p.onnx"
    path.write_bytes(to_onnx(actor, {METADATA: '{"control": {"action_scale": 0.5}}'}))
    assert load_policy(str(path)).action_scale == 0.5
    path.write_bytes(to_onnx(actor, {METADATA: "{}"}))
    with pytest.raises(InputError, match="damaged"):
        load_policy(str(path))
