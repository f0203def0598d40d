"""ONNX files as policies: memory, shapes, and what is refused."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from acting import CPU, act, see
from onnx import TensorProto, helper

from horizon_rl.evaluation.blocks import Padded
from horizon_rl.policies.learned import load_actor
from horizon_rl.policies.load import load_policy
from horizon_rl.policies.onnx import OnnxPolicy
from horizon_rl.policies.onnx_graph import to_onnx
from horizon_rl.support.errors import InputError
from small_checkpoints import ACTORS


def write_onnx(path: Path, inputs, outputs, nodes, constants=()) -> Path:
    """Write a small model; inputs and outputs are (name, shape) of floats."""

    def values(pairs):
        kind = TensorProto.FLOAT
        return [helper.make_tensor_value_info(n, kind, shape) for n, shape in pairs]

    arrays = [onnx.numpy_helper.from_array(x, name) for name, x in constants]
    graph = helper.make_graph(nodes, "g", values(inputs), values(outputs), arrays)
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return path


def counter(path: Path, worlds: int | str = 1, names=("h", "next_h")) -> Path:
    """Write a policy that counts its steps: all actions are the number of the step."""
    memory, remembered = names
    nodes = [
        helper.make_node("Add", [memory, "one"], [remembered]),
        helper.make_node("MatMul", ["obs", "zeros"], ["nothing"]),
        helper.make_node("Add", ["nothing", remembered], ["action"]),
    ]
    constants = [
        ("one", np.ones((1, 12), np.float32)),
        ("zeros", np.zeros((45, 12), np.float32)),
    ]
    inputs = [("obs", [worlds, 45]), (memory, [worlds, 12])]
    outputs = [("action", [worlds, 12]), (remembered, [worlds, 12])]
    return write_onnx(path, inputs, outputs, nodes, constants)


@pytest.mark.parametrize("kind", ACTORS)
def test_exported_file_acts_as_the_checkpoint(
    make_checkpoint, tmp_path, random_obs, kind
):
    checkpoint = make_checkpoint(kind)
    actor = load_actor(checkpoint)[0]
    (tmp_path / "a.onnx").write_bytes(to_onnx(actor))
    policies = [
        load_policy(str(p)).make(CPU) for p in (checkpoint, tmp_path / "a.onnx")
    ]
    ended = torch.tensor([False, True, False, False, True])
    for step, obs in enumerate(random_obs):
        if step == 3:  # Two episodes end while the others go on.
            for policy in policies:
                policy.reset(ended)
        expected, found = (act(policy, obs) for policy in policies)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("worlds", [1, "n"])
@pytest.mark.parametrize("names", [("h", "next_h"), ("h_in", "h_out")])
def test_memory_is_fed_back_and_blank_at_every_start(tmp_path, worlds, names):
    policy = load_policy(str(counter(tmp_path / "c.onnx", worlds, names))).make(CPU)
    obs = np.zeros((3, 45))
    policy.reset(torch.ones(3, dtype=torch.bool))
    assert [act(policy, obs)[:, 0].tolist() for _ in range(2)] == [[1] * 3, [2] * 3]
    policy.reset(torch.tensor([False, True, False]))
    assert act(policy, obs)[:, 0].tolist() == [3, 1, 3]
    # Another number of worlds: nothing of the past is left.
    policy.reset(torch.ones(2, dtype=torch.bool))
    assert act(policy, obs[:2])[:, 0].tolist() == [1, 1]


def test_one_robot_steps_with_a_memory_of_its_own(tmp_path):
    policy = OnnxPolicy(counter(tmp_path / "c.onnx").read_bytes())
    obs, memory, other = np.zeros((1, 45), np.float32), policy.blank(1), policy.blank(1)
    assert [policy.step(obs, memory)[0, 0] for _ in range(3)] == [1, 2, 3]
    assert policy.step(obs, other)[0, 0] == 1
    assert (memory["h"] == 3).all() and policy.inputs["h"] == (1, 12)


def linear(path: Path, shape: list, width: int, num_actions: int = 12) -> Path:
    constants = [("w", np.zeros((width, num_actions), np.float32))]
    node = helper.make_node("MatMul", ["obs", "w"], ["action"])
    outputs = [("action", [None] * (len(shape) - 1) + [num_actions])]
    return write_onnx(path, [("obs", shape)], outputs, [node], constants)


@pytest.mark.parametrize(
    ("shape", "width", "message"),
    [
        ([1, 48], 48, r"'obs' is .* of shape \[1, 48\]; accepted"),
        ([45], 45, r"of shape \[45\]; accepted: observations"),
        ([16, 45], 45, r"of shape \[16, 45\]"),
    ],
)
def test_file_of_another_shape_is_refused(tmp_path, shape, width, message):
    path = linear(tmp_path / "x.onnx", shape, width)
    with pytest.raises(InputError, match=message) as error:
        load_policy(str(path))
    assert str(error.value).startswith(str(path))


def test_file_with_other_actions_is_refused_when_it_acts(tmp_path):
    policy = load_policy(str(linear(tmp_path / "x.onnx", ["n", 45], 45, 11))).make(CPU)
    with pytest.raises(InputError, match=r"shape \(3, 11\); 3 worlds need \(3, 12\)"):
        Padded(policy, 3).act(see(np.zeros((3, 45))))


def test_file_that_cannot_be_run_is_refused_when_it_acts(tmp_path):
    policy = load_policy(str(linear(tmp_path / "x.onnx", ["n", "w"], 44))).make(CPU)
    with pytest.raises(InputError, match="cannot be run"):
        policy.act(see(np.zeros((3, 45))))


def test_memory_without_an_output_is_refused(tmp_path):
    path = counter(tmp_path / "c.onnx", names=("h", "later"))
    with pytest.raises(InputError, match="'h' has no output 'next_h'.*action, later"):
        load_policy(str(path))


@pytest.mark.parametrize("sizes", [[1, 10**12], [1, 1001, 1000], [1, 0]])
def test_memory_that_is_too_large_is_refused_before_it_is_allocated(tmp_path, sizes):
    nodes = [
        helper.make_node("MatMul", ["obs", "zeros"], ["action"]),
        helper.make_node("Identity", ["h"], ["next_h"]),
    ]
    inputs, outputs = [("obs", [1, 45]), ("h", sizes)], [("action", [1, 12])]
    constants = [("zeros", np.zeros((45, 12), np.float32))]
    outputs += [("next_h", sizes)]
    file = write_onnx(tmp_path / "a.onnx", inputs, outputs, nodes, constants)
    with pytest.raises(InputError, match="1,000,000 numbers a robot at most"):
        load_policy(str(file))


def test_what_is_no_onnx_is_refused(tmp_path):
    path = tmp_path / "x.onnx"
    with pytest.raises(InputError, match="No such file"):
        load_policy(str(path))
    for content in (b"", b"not a model"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="not a usable ONNX file"):
            load_policy(str(path))


def test_onnx_digest_is_that_of_the_content(tmp_path):
    a, b = counter(tmp_path / "a.onnx"), counter(tmp_path / "b.onnx")
    other = counter(tmp_path / "c.onnx", "n")
    digests = [load_policy(str(path)).digest for path in (a, b, other)]
    assert digests[0] == digests[1] != digests[2]
