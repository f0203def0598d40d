"""ONNX files that were made to do harm: refused, and in words that do none."""

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from test_onnx import linear, write_onnx
from test_onnx_file import write_split

from horizon_rl.cli import main
from horizon_rl.policies import onnx_file
from horizon_rl.policies.load import load_policy
from horizon_rl.support.errors import InputError

ESCAPE = "\x1b[2J\x1b]0;pwned\x07"
NOTHING = helper.make_node("MatMul", ["obs", "zeros"], ["nothing"])
ZEROS = ("zeros", np.zeros((45, 12), np.float32))


def write_graph(path: Path, nodes, constants=()) -> Path:
    """Write a policy that adds what `nodes` call `more` to no action."""
    nodes = [NOTHING, *nodes, helper.make_node("Add", ["nothing", "more"], ["action"])]
    sides = [("obs", ["n", 45])], [("action", ["n", 12])]
    return write_onnx(path, *sides, nodes, [ZEROS, *constants])


def alter_split(folder: Path, **entries: str | None) -> Path:
    """Write a policy with other entries about where its weights lie; None: without."""
    path = write_split(folder, 1.0)
    model = onnx.load(path, load_external_data=False)
    (bias,) = (x for x in model.graph.initializer if x.name == "bias")
    found = {entry.key: entry.value for entry in bias.external_data} | entries
    del bias.external_data[:]
    for key, value in found.items():
        if value is not None:
            bias.external_data.add(key=key, value=value)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("value", ["-1", "x", "nan", "", "9" * 5000, "49"])
@pytest.mark.parametrize("key", ["offset", "length"])
def test_place_of_weights_that_is_no_place_is_refused(tmp_path, capsys, key, value):
    path = alter_split(tmp_path, **{key: value})
    assert main(["eval", str(path)]) == 2
    err = capsys.readouterr().err
    assert "p.onnx: its weights in 'w.bin': " in err and "Traceback" not in err


def test_weights_without_a_length_are_the_rest_of_their_file(tmp_path):
    path = alter_split(tmp_path, length=None)
    assert load_policy(str(path))
    with open(tmp_path / "w.bin", "ab") as weights:
        weights.write(b"more")
    with pytest.raises(InputError, match="52 bytes for 'bias', whose shape needs 48"):
        load_policy(str(path))


def test_large_neighbour_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = alter_split(tmp_path, length=None)
    os.truncate(tmp_path / "w.bin", 20 << 30)  # It takes no room on the disk.
    monkeypatch.setattr(onnx_file, "load_external_data_for_tensor", pytest.fail)
    with pytest.raises(InputError, match="21,474,836,480 bytes for 'bias'"):
        load_policy(str(path))


def test_weights_of_many_tensors_are_bounded_together(tmp_path, monkeypatch):
    path = write_split(tmp_path, 1.0)
    monkeypatch.setattr(onnx_file, "MAX_BYTES", path.stat().st_size + 48)
    assert load_policy(str(path))
    model = onnx.load(path, load_external_data=False)
    (bias,) = (x for x in model.graph.initializer if x.name == "bias")
    model.graph.initializer.add().CopyFrom(bias)
    path.write_bytes(model.SerializeToString())
    with pytest.raises(InputError, match="with them it is larger than"):
        load_policy(str(path))


def test_memory_that_runs_out_is_named(tmp_path, monkeypatch):
    def fill(*args: object) -> None:
        raise MemoryError

    path = write_split(tmp_path, 1.0)
    monkeypatch.setattr(onnx_file, "load_external_data_for_tensor", fill)
    with pytest.raises(InputError, match="its weights in 'w.bin': not enough memory"):
        load_policy(str(path))


def test_content_that_is_too_large_is_refused(tmp_path, monkeypatch):
    path, limit = linear(tmp_path / "x.onnx", ["n", 45], 45), onnx_file.MAX_BYTES
    monkeypatch.setattr(onnx_file, "MAX_BYTES", path.stat().st_size - 1)
    with pytest.raises(InputError, match="larger than 0 MB"):
        load_policy(str(path))
    assert limit >> 20 == 256


SUM = helper.make_node("ReduceSum", ["large"], ["more"], keepdims=0)
SHAPE = ("shape", np.array([10**6, 3000]))
SPARSE = helper.make_sparse_tensor(
    numpy_helper.from_array(np.ones(1, np.float32), "one"),
    numpy_helper.from_array(np.zeros(1, np.int64), "place"),
    [3 * 10**9],
)


@pytest.mark.parametrize(
    ("node", "constants"),
    [
        (helper.make_node("ConstantOfShape", ["shape"], ["large"]), [SHAPE]),
        (
            helper.make_node("Expand", ["one", "shape"], ["large"]),
            [SHAPE, ("one", np.ones((1, 1), np.float32))],
        ),
        (helper.make_node("RandomNormal", [], ["large"], shape=SHAPE[1].tolist()), []),
        (helper.make_node("Constant", [], ["large"], sparse_value=SPARSE), []),
    ],
    ids=lambda value: getattr(value, "op_type", ""),
)
def test_constant_that_grows_in_memory_is_refused(tmp_path, node, constants):
    path = write_graph(tmp_path / "x.onnx", [node, SUM], constants)
    assert path.stat().st_size < 5000
    with pytest.raises(InputError, match=r"3000000000|1000000, 3000.* accepted: 67,1"):
        load_policy(str(path))


def test_huge_output_is_refused(tmp_path):
    nodes = [NOTHING, helper.make_node("ConstantOfShape", ["shape"], ["action"])]
    sides = [("obs", ["n", 45])], [("action", SHAPE[1].tolist())]
    path = write_onnx(tmp_path / "x.onnx", *sides, nodes, [ZEROS, SHAPE])
    with pytest.raises(InputError, match="output 'action' is of shape"):
        load_policy(str(path))


def test_runtime_writes_no_names_of_the_file(tmp_path, capfd):
    nodes = [
        helper.make_node("ReduceSum", ["nothing"], ["sum"], keepdims=0),
        helper.make_node("Cast", ["sum"], ["zero"], to=onnx.TensorProto.INT64),
        helper.make_node("Add", ["zero", "far"], ["index"]),
        helper.make_node("Gather", ["rows", "index"], ["more"], name=ESCAPE),
    ]
    constants = [("far", np.array(99)), ("rows", np.zeros((4, 12), np.float32))]
    path = write_graph(tmp_path / "x.onnx", nodes, constants)
    assert main(["eval", str(path), "--episodes", "1", "--device", "cpu"]) == 2
    out, err = capfd.readouterr()
    assert "\x1b" not in out + err and "\x07" not in out + err
    assert "cannot be run" in err and r"\x1b[2J\x1b]0;pwned\x07" in err
