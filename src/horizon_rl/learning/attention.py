"""Causal attention over a sliding window, with rotary positions.

Tokens lie on a line of slots in order of time: the difference of two slots is the age
of one token as seen from the other, and rotary embeddings depend on nothing else.
"""

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from horizon_rl.learning.config import TransformerCfg

Extend = Callable[[int, Tensor, Tensor], tuple[Tensor, Tensor]]
"""Given a layer's number and its tokens' keys (not yet rotated) and values, say what
they attend to: rotated keys and values, the tokens' own among them."""


def rotation_table(num_slots: int, head_dim: int, base: float) -> Tensor:
    """Return cosines and sines of the rotary embedding, [2, slots, head_dim / 2]."""
    # In double precision: in single, the angle of slot 254 is off by 1e-5.
    pairs = torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim
    angles = torch.arange(num_slots, dtype=torch.float64).outer(base**-pairs)
    return torch.stack((angles.cos(), angles.sin())).float()


def rotate(x: Tensor, rotation: Tensor) -> Tensor:
    """Turn the pairs of x [n, heads, T, head_dim] by the rows of a table [2, T, -]."""
    cos, sin = rotation
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


def visible(queries: Tensor, keys: Tensor, first: Tensor, window: int) -> Tensor:
    """Return which keys a query sees: of its own episode, none later, none too old.

    Args:
        queries: [T] their slots.
        keys: [S] their slots.
        first: [n, T] the slot at which each query's episode began.
        window: The greatest age that is seen.

    Returns:
        [n, 1, T, S], the same for all heads.
    """
    age = queries.unsqueeze(1) - keys
    # A query sees at least itself, or its row of attention would be 0 / 0.
    begun = keys >= torch.minimum(first, queries).unsqueeze(-1)
    return (begun & (age >= 0) & (age <= window)).unsqueeze(1)


def attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Weigh values [n, heads, S, -] by queries [n, heads, T, -], where `mask` is true.

    On a GPU by plain products: torch's fused kernels are made for long sequences and
    wide heads. For 24 queries of 151 keys, heads of 16 and 1024 worlds they take 3.0 ms
    back and forth, this 1.2; acting for 4096 worlds 2.4 ms a step in all, with this 0.7
    (H200, benchmarks/results/h200.jsonl).
    """
    if queries.device.type == "cpu":
        return scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
    scale = queries.shape[-1] ** -0.5
    hidden = torch.zeros_like(mask, dtype=queries.dtype).masked_fill_(~mask, -torch.inf)
    scores = (scale * queries) @ keys.transpose(-1, -2) + hidden
    return scores.softmax(dim=-1) @ values


class DecoderLayer(nn.Module):
    """Attention, then a feed-forward part, each beside a residual path.

    Normalised before rather than after: gradients reach the embedding at full size from
    the first step, so that no warm-up is needed, for which PPO's rate leaves no room.
    """

    def __init__(self, cfg: TransformerCfg):
        super().__init__()
        dim, self.num_heads = cfg.embedding_dim, cfg.num_heads
        self.attention_norm = nn.LayerNorm(dim)
        self.query = nn.Linear(dim, dim)
        # Apart from the query: of the past only keys and values are needed.
        self.key_value = nn.Linear(dim, 2 * dim)
        self.output = nn.Linear(dim, dim)
        self.feedforward_norm = nn.LayerNorm(dim)
        self.feedforward = nn.Sequential(
            nn.Linear(dim, cfg.feedforward_dim),
            nn.GELU(),
            nn.Linear(cfg.feedforward_dim, dim),
        )

    def keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys, not rotated, and values [n, heads, T, -] of x [n, T, dim]."""
        keys, values = self.key_value(self.attention_norm(x)).chunk(2, dim=-1)
        return self._split(keys), self._split(values)

    def forward(
        self, x: Tensor, rotation: Tensor, keys: Tensor, values: Tensor, mask: Tensor
    ) -> Tensor:
        """Let tokens x [n, T, dim] attend to S keys where mask [n, 1, T, S] is true."""
        queries = rotate(self._split(self.query(self.attention_norm(x))), rotation)
        seen = attend(queries, keys, values, mask)
        x = x + self.output(seen.transpose(1, 2).flatten(2))
        return x + self.feedforward(self.feedforward_norm(x))

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)


class Decoder(nn.Module):
    """Layers that each attend to a window of the layer below."""

    def __init__(self, cfg: TransformerCfg):
        super().__init__()
        layers = [DecoderLayer(cfg) for _ in range(cfg.num_layers)]
        self.layers = cast(list[DecoderLayer], nn.ModuleList(layers))
        self.norm = nn.LayerNorm(cfg.embedding_dim)

    def forward(
        self, x: Tensor, rotation: Tensor, mask: Tensor, extend: Extend
    ) -> Tensor:
        """Return latents [n, T, dim] of tokens x [n, T, dim].

        Step by step, over a rollout, or in an exported file: the callers differ only in
        where the past comes from, which `extend` says.
        """
        for number, layer in enumerate(self.layers):
            keys, values = extend(number, *layer.keys_values(x))
            x = layer(x, rotation, keys, values, mask)
        return self.norm(x)
