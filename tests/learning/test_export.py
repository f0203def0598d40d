"""Exported files act as the actor does."""

from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import onnx
import torch
from onnx.reference import ReferenceEvaluator
from tensordict import TensorDict
from toys import SMALL, SMALL_MLP

from horizon_rl.learning import ActorCfg, MlpCfg, TransformerCfg, build_actor
from horizon_rl.policies.learned import LearnedPolicy
from horizon_rl.policies.onnx_graph import OnnxTransformer, to_onnx


def make_actor(cfg: ActorCfg, num_inputs=45, num_actions=12) -> Any:
    torch.manual_seed(0)
    obs = TensorDict({"actor": torch.zeros(1, num_inputs)}, [1])
    actor: Any = build_actor(obs, num_actions, cfg)
    actor.obs_normalizer.update(1.0 + 2.0 * torch.randn(100, num_inputs))
    if not isinstance(cfg, MlpCfg):
        torch.nn.init.normal_(actor.mlp.weight, std=0.1)
    return actor


def shapes(path):
    graph = onnx.load(path).graph
    return {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in (*graph.input, *graph.output)
    }


def test_exported_transformer_matches_torch_for_300_steps(tmp_path):
    actor, path = make_actor(TransformerCfg()), tmp_path / "actor.onnx"
    path.write_bytes(to_onnx(actor))
    cache_shape = [1, 1, 2, 8, 127, 16]
    assert shapes(path) == {
        "obs": [1, 45],
        "cache": cache_shape,
        "valid": [1],
        "action": [1, 12],
        "next_cache": cache_shape,
        "next_valid": [1],
    }
    session: Any = ReferenceEvaluator(str(path))
    policy = LearnedPolicy(actor)
    cache = np.zeros(cache_shape, np.float32)
    valid = np.zeros(1, np.int64)
    torch.manual_seed(1)
    for step in range(300):
        obs = torch.randn(1, 45)
        if step == 250:  # An episode ends: the cache may keep what it has.
            valid = np.zeros(1, np.int64)
            policy.reset(torch.ones(1, dtype=torch.bool))
        feed = {"obs": obs.numpy(), "cache": cache, "valid": valid}
        action, cache, valid = session.run(None, feed)
        expected = policy.act(TensorDict({"actor": obs}, [1])).numpy()
        np.testing.assert_allclose(action, expected, rtol=0, atol=1e-5)
        if step == 200:
            assert valid.tolist() == [127]


def test_cache_of_several_layers_matches_too():
    # The module that is written, run by torch: the file itself is checked above.
    actor = make_actor(replace(SMALL, num_layers=3, window=6), 5, 3)
    module, policy = OnnxTransformer(actor), LearnedPolicy(actor)
    cache, valid = torch.zeros(module.cache_shape), torch.zeros(1, dtype=torch.long)
    for _ in range(40):
        obs = torch.randn(1, 5)
        with torch.no_grad():
            action, cache, valid = module(obs, cache, valid)
        expected = policy.act(TensorDict({"actor": obs}, [1]))
        torch.testing.assert_close(action, expected, rtol=0, atol=1e-5)


def test_exported_mlp_matches_torch_in_the_same_interface(tmp_path):
    actor, path = make_actor(SMALL_MLP), tmp_path / "actor.onnx"
    path.write_bytes(to_onnx(actor))
    assert shapes(path) == {
        "obs": [1, 45],
        "cache": [1, 1],
        "valid": [1],
        "action": [1, 12],
        "next_cache": [1, 1],
        "next_valid": [1],
    }
    session: Any = ReferenceEvaluator(str(path))
    policy = LearnedPolicy(actor)
    cache, valid = np.zeros((1, 1), np.float32), np.zeros(1, np.int64)
    for _ in range(3):
        obs = torch.randn(1, 45)
        feed = {"obs": obs.numpy(), "cache": cache, "valid": valid}
        action, cache, valid = session.run(None, feed)
        expected = policy.act(TensorDict({"actor": obs}, [1]))
        np.testing.assert_allclose(action, expected.numpy(), rtol=0, atol=1e-6)
        assert valid.tolist() == [0]


def test_file_tells_what_it_is_told_and_nothing_of_the_machine():
    actor = make_actor(SMALL_MLP)
    content = to_onnx(actor, {"about": "a test"})
    assert content == to_onnx(actor, {"about": "a test"})
    model = onnx.load_from_string(content)
    about, checksum = ((p.key, p.value) for p in model.metadata_props)
    assert about == ("about", "a test")
    # As docs/deploy.md says.
    assert checksum == ("horizon_sha256", sha256(content[:-84]).hexdigest())
    assert b".py" not in content
