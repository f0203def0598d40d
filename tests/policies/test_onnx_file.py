"""ONNX files as they lie on a disk: weights beside them, and changes after the export."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from acting import CPU, act
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data

from horizon_rl.policies.learned import load_actor
from horizon_rl.policies.load import load_policy
from horizon_rl.policies.onnx import OnnxPolicy
from horizon_rl.policies.onnx_graph import METADATA, to_onnx
from horizon_rl.support.errors import InputError


def write_split(folder: Path, weight: float, location: str = "w.bin") -> Path:
    """Write a policy whose weights lie in another file; its actions are `weight`."""
    folder.mkdir(parents=True, exist_ok=True)
    bias = numpy_helper.from_array(np.zeros(12, np.float32), "bias")
    set_external_data(bias, location, length=48)
    bias.ClearField("raw_data")
    zeros = numpy_helper.from_array(np.zeros((45, 12), np.float32), "zeros")
    nodes = [
        helper.make_node("MatMul", ["obs", "zeros"], ["nothing"]),
        helper.make_node("Add", ["nothing", "bias"], ["action"]),
    ]
    kind = TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info("obs", kind, ["n", 45])]
    outputs = [helper.make_tensor_value_info("action", kind, ["n", 12])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [zeros, bias])
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=9)
    (folder / "p.onnx").write_bytes(model.SerializeToString())
    write_weight(folder / "w.bin", weight)
    return folder / "p.onnx"


def write_weight(path: Path, weight: float) -> None:
    path.write_bytes(np.full(12, weight, np.float32).tobytes())


def action_of(path: Path) -> float:
    policy = load_policy(str(path)).make(CPU)
    return float(act(policy, np.zeros((1, 45), np.float32))[0, 0])


def test_weights_lie_beside_the_file_wherever_one_stands(tmp_path, monkeypatch):
    path = write_split(tmp_path / "theirs", 1.0)
    (tmp_path / "here").mkdir()
    write_weight(tmp_path / "here" / "w.bin", 2.0)
    monkeypatch.chdir(tmp_path / "here")
    assert action_of(path) == 1.0


def test_other_weights_are_another_policy(tmp_path):
    path = write_split(tmp_path, 1.0)
    first = load_policy(str(path)).digest
    write_weight(tmp_path / "w.bin", 2.0)
    assert load_policy(str(path)).digest != first
    assert action_of(path) == 2.0
    write_weight(tmp_path / "w.bin", 1.0)
    assert load_policy(str(path)).digest == first


@pytest.mark.parametrize("location", ["../w.bin", "/etc/hostname", "none.bin", ""])
def test_weights_anywhere_else_are_refused(tmp_path, location):
    write_weight(tmp_path / "w.bin", 1.0)
    path = write_split(tmp_path / "theirs", 1.0, location)
    with pytest.raises(InputError, match="p.onnx: its weights in"):
        load_policy(str(path))


def test_link_to_weights_elsewhere_is_refused(tmp_path):
    path = write_split(tmp_path / "theirs", 1.0)
    (tmp_path / "theirs" / "w.bin").rename(tmp_path / "w.bin")
    (tmp_path / "theirs" / "w.bin").symlink_to(tmp_path / "w.bin")
    with pytest.raises(InputError, match="p.onnx: its weights in"):
        load_policy(str(path))


def test_bytes_alone_have_no_place_for_other_files(tmp_path, monkeypatch):
    content = write_split(tmp_path, 1.0).read_bytes()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="its weights in"):
        OnnxPolicy(content)


@pytest.fixture
def exported(make_checkpoint, tmp_path) -> Path:
    actor = load_actor(make_checkpoint("mlp"))[0]
    path = tmp_path / "a.onnx"
    path.write_bytes(to_onnx(actor, {METADATA: '{"control": {"action_scale": 0.25}}'}))
    return path


def test_no_byte_of_an_export_can_be_changed_unnoticed(exported):
    whole, rng = exported.read_bytes(), np.random.default_rng(0)
    policy = load_policy(str(exported))
    observations = np.random.default_rng(1).normal(size=(1, 45)).astype(np.float32)
    expected = act(policy.make(CPU), observations)
    for place in (*rng.integers(len(whole), size=150), *range(len(whole) - 100, -1)):
        changed = bytearray(whole)
        changed[place] ^= 1 << rng.integers(8)
        exported.write_bytes(changed)
        try:
            other = load_policy(str(exported))
        except InputError:
            continue
        # Only in the checksum's own name, which changes no action.
        assert place > len(whole) - 100
        assert other.action_scale == policy.action_scale
        np.testing.assert_array_equal(act(other.make(CPU), observations), expected)


def test_altered_action_scale_is_refused(exported):
    content = exported.read_bytes()
    exported.write_bytes(content.replace(b"0.25}}", b"0.95}}"))
    assert exported.read_bytes() != content
    with pytest.raises(InputError, match="a.onnx: .*changed after its export"):
        load_policy(str(exported))


def test_file_that_another_tool_saved_again_is_refused(exported):
    model = onnx.load(exported)
    model.doc_string = "changed"
    onnx.save(model, exported)
    with pytest.raises(InputError, match="changed after its export"):
        load_policy(str(exported))


def test_export_without_a_checksum_still_loads(exported, make_checkpoint):
    # As versions before wrote them.
    model = onnx.load(exported)
    del model.metadata_props[-1]
    onnx.save(model, exported)
    assert load_policy(str(exported)).action_scale == 0.25


def test_export_is_reproducible(make_checkpoint, tmp_path):
    actor = load_actor(make_checkpoint("mlp"))[0]
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(to_onnx(actor))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
