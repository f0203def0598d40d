"""Actors as ONNX files: normaliser inside, mean action out, the cache by the caller."""

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from rsl_rl.models import MLPModel
from torch import Tensor, nn

from horizon_rl.learning.attention import rotate, rotation_table, visible

if TYPE_CHECKING:
    from horizon_rl.learning.transformer import TransformerActor


class OnnxTransformer(nn.Module):
    """One step of one robot; what it remembers goes out and comes back in.

    The cache has keys before their rotation, oldest first. They are rotated by age in
    every step, so that the file needs no step counter; for one robot that is cheap.
    """

    rotation: Tensor
    slots: Tensor
    input_names = ["obs", "cache", "valid"]
    output_names = ["action", "next_cache", "next_valid"]

    def __init__(self, actor: "TransformerActor"):
        super().__init__()
        cfg = actor.cfg
        head_dim = cfg.embedding_dim // cfg.num_heads
        self.cache_shape = (1, cfg.num_layers, 2, cfg.num_heads, cfg.window, head_dim)
        self.window = cfg.window
        self.obs_dim = actor.obs_dim
        self.normalizer = copy.deepcopy(actor.obs_normalizer)
        self.embedding = copy.deepcopy(actor.embedding)
        self.decoder = copy.deepcopy(actor.decoder)
        self.head = copy.deepcopy(actor.mlp)
        table = rotation_table(cfg.window + 1, head_dim, cfg.rope_base)
        self.register_buffer("rotation", table)
        self.register_buffer("slots", torch.arange(cfg.window + 1))

    def forward(
        self, obs: Tensor, cache: Tensor, valid: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Act once.

        Args:
            obs: [1, inputs] raw observation.
            cache: [1, layers, 2, heads, window, head_dim] keys and values; zeros first.
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

        tokens = self.embedding(self.normalizer(obs)).unsqueeze(1)
        latent = self.decoder(tokens, self.rotation[:, window:], mask, extend)
        action = self.head(latent.squeeze(1))
        return action, torch.stack(caches, dim=1), (valid + 1).clamp(max=window)

    def get_dummy_inputs(self) -> tuple[Tensor, ...]:
        """Return inputs for the first step of an episode."""
        cache = torch.zeros(self.cache_shape)
        return torch.zeros(1, self.obs_dim), cache, torch.zeros(1, dtype=torch.long)


def export_onnx(actor: MLPModel, path: Path) -> None:
    """Write an actor to a file.

    A transformer has inputs `obs`, `cache`, `valid` and outputs `action`, `next_cache`,
    `next_valid`; an MLP has `obs` and `action`. All shapes are fixed, for one robot.
    """
    module: Any = actor.as_onnx(verbose=False).cpu().eval()
    is_transformer = isinstance(module, OnnxTransformer)
    torch.onnx.export(
        module,
        module.get_dummy_inputs(),
        path,
        input_names=module.input_names,
        # rsl_rl's MLP says `actions`; one name for both.
        output_names=module.output_names if is_transformer else ["action"],
        external_data=False,
        verbose=False,
    )
