"""Actors as ONNX files: normaliser inside, mean action out, the cache by the caller."""

import copy
import logging
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from horizon_rl.learning import Actor, GramActor, TransformerActor
from horizon_rl.learning.attention import rotate, rotation_table, visible
from horizon_rl.policies.onnx_file import seal
from horizon_rl.support.errors import InputError, unknown

METADATA = "horizon"
"""Key of what we say of a policy in its file, as JSON."""

INPUTS = ["obs", "cache", "valid"]
OUTPUTS = ["action", "next_cache", "next_valid"]


class OnnxTransformer(nn.Module):
    """One step of one robot; what it remembers goes out and comes back in.

    The cache has keys before their rotation, oldest first. They are rotated by age in
    every step, so that the file needs no step counter; for one robot that is cheap.
    """

    rotation: Tensor
    slots: Tensor

    def __init__(self, actor: TransformerActor):
        super().__init__()
        cfg = actor.cfg
        self.window = cfg.window
        self.view = copy.deepcopy(actor.view)
        heads = (cfg.num_heads, cfg.window, cfg.head_dim)
        self.cache_shape = (actor.view.num_views, cfg.num_layers, 2, *heads)
        self.normalizer = copy.deepcopy(actor.obs_normalizer)
        self.embedding = copy.deepcopy(actor.embedding)
        self.decoder = copy.deepcopy(actor.decoder)
        self.head = copy.deepcopy(actor.mlp)
        table = rotation_table(cfg.window + 1, cfg.head_dim, cfg.rope_base)
        self.register_buffer("rotation", table)
        self.register_buffer("slots", torch.arange(cfg.window + 1))

    def forward(
        self, obs: Tensor, cache: Tensor, valid: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Act once.

        Args:
            obs: [1, inputs] raw observation.
            cache: [num_views, layers, 2, heads, window, head_dim] keys and values; zeros
                first.
            valid: [1] integer, steps remembered; 0 begins an episode.

        Returns:
            Mean action [1, actions], and cache and valid for the next call.
        """
        window = self.window
        first = (window - valid).unsqueeze(1)
        mask = visible(self.slots[window:], self.slots, first, window)
        caches = []

        def extend(layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
            keys = torch.cat((cache[:, layer, 0], keys), dim=2)
            values = torch.cat((cache[:, layer, 1], values), dim=2)
            caches.append(torch.stack((keys[:, :, 1:], values[:, :, 1:]), dim=1))
            return rotate(keys, self.rotation), values

        seen = self.view.add_views(obs, dim=0)
        tokens = self.embedding(self.normalizer(seen)).unsqueeze(1)
        latent = self.decoder(tokens, self.rotation[:, window:], mask, extend)
        action = self.view.mean_action(self.head(latent.squeeze(1)))
        return action, torch.stack(caches, dim=1), (valid + 1).clamp(max=window)


class OnnxMlp(nn.Module):
    """One step of one robot, in the transformer's interface: a memory of no steps.

    So a deployment need not know which kind a policy is.
    """

    cache_shape = (1, 1)

    def __init__(self, actor: Actor):
        super().__init__()
        self.act, self.view = actor.as_onnx(verbose=False), copy.deepcopy(actor.view)

    def forward(
        self, obs: Tensor, cache: Tensor, valid: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Act once; `cache` [1, 1] comes back as it is, `next_valid` [1] is 0."""
        action = self.view.mean_action(self.act(self.view.add_views(obs, dim=0)))
        return action, cache.clone(), (valid + 1).clamp(max=0)


class OnnxGram(nn.Module):
    """One step of one robot; the cache has its last normalised observations."""

    slots: Tensor

    def __init__(self, actor: GramActor):
        super().__init__()
        self.window = actor.window
        self.register_buffer("slots", torch.arange(actor.window))
        self.cache_shape = (1, actor.window, actor.obs_dim)
        self.normalizer = copy.deepcopy(actor.obs_normalizer)
        self.history, self.mlp = copy.deepcopy(actor.history), copy.deepcopy(actor.mlp)

    def forward(
        self, obs: Tensor, cache: Tensor, valid: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Act once; of `cache` [1, window, inputs] the last `valid` [1] steps count."""
        seen = self.normalizer(obs)
        known = self.slots >= self.window - valid.unsqueeze(1)
        past = torch.where(known.unsqueeze(-1), cache, 0.0)
        window = torch.cat((past, seen.unsqueeze(1)), dim=1)
        latent = self.history.trusted(window.flatten(1))
        action = self.mlp(torch.cat((seen, latent), dim=1))
        return action, window[:, 1:], (valid + 1).clamp(max=self.window)


# Any: each takes actors of its own kind.
SINGLE_STEPS: dict[str, Callable[[Any], nn.Module]] = {
    "transformer": OnnxTransformer,
    "mlp": OnnxMlp,
    "gram": OnnxGram,
}
"""By an actor's kind, what makes the module that is exported of it."""


def to_onnx(actor: Actor, metadata: Mapping[str, str] | None = None) -> bytes:
    """Return an actor as the content of an ONNX file, the same for the same actor.

    Inputs are `obs`, `cache` and `valid`, outputs `action`, `next_cache` and
    `next_valid`. All shapes are fixed, for one robot. The checksum is its last part.

    Args:
        actor: What to write.
        metadata: Texts to put into the file, by their keys.
    """
    if actor.kind not in SINGLE_STEPS:
        raise InputError(unknown("kind of actor", actor.kind, SINGLE_STEPS))
    module: Any = SINGLE_STEPS[actor.kind](actor).cpu().eval()
    first_step = (
        torch.zeros(1, actor.obs_dim),
        torch.zeros(module.cache_shape),
        torch.zeros(1, dtype=torch.long),
    )
    # What the exporter says is of libraries that we do not use.
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module,
            first_step,
            input_names=INPUTS,
            output_names=OUTPUTS,
            verbose=False,
        )
    assert program is not None
    model: Any = program.model_proto
    graph = model.graph
    # The exporter notes which line of which file on this machine made a node.
    for part in (graph, *graph.node, *graph.value_info, *graph.initializer):
        del part.metadata_props[:]
    for key, text in (metadata or {}).items():
        model.metadata_props.add(key=key, value=text)
    return seal(model.SerializeToString(deterministic=True))
