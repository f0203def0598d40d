"""The transformer written down plainly: one episode, token by token, in doubles."""

import torch
from torch import Tensor
from torch.nn.functional import gelu, layer_norm, linear

from horizon_rl.learning import TransformerActor


def reference_latents(actor: TransformerActor, raw: Tensor) -> Tensor:
    """Return latents [t, dim] of an episode's inputs [t, inputs], from its start.

    Every layer of every token looks at the layer below, at most a window back. Keys are
    turned by their age, as complex numbers; no mask, no cache, no slots.
    """
    cfg = actor.cfg
    w = {name: value.double() for name, value in actor.state_dict().items()}

    def apply(name: str, x: Tensor) -> Tensor:
        return linear(x, w[f"{name}.weight"], w[f"{name}.bias"])

    def norm(name: str, x: Tensor) -> Tensor:
        return layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"])

    def as_complex(x: Tensor) -> Tensor:
        real, imaginary = x.unflatten(-1, (cfg.num_heads, -1)).chunk(2, dim=-1)
        return torch.complex(real, imaginary)

    scale = w["obs_normalizer._std"] + 1e-2
    x = apply("embedding", (raw.double() - w["obs_normalizer._mean"]) / scale)
    head_dim = cfg.embedding_dim // cfg.num_heads
    pairs = torch.arange(head_dim // 2).double()
    speed = cfg.rope_base ** (-2.0 * pairs / head_dim)
    for number in range(cfg.num_layers):
        layer = f"decoder.layers.{number}"
        y = norm(f"{layer}.attention_norm", x)
        queries = as_complex(apply(f"{layer}.query", y))
        keys, values = apply(f"{layer}.key_value", y).chunk(2, dim=-1)
        keys, values = as_complex(keys), values.unflatten(-1, (cfg.num_heads, -1))
        seen = []
        for now in range(len(raw)):
            past = slice(max(0, now - cfg.window), now + 1)
            ages = now - torch.arange(past.start, past.stop).double()
            turned = keys[past] * torch.exp(-1j * ages[:, None] * speed)[:, None]
            scores = (queries[now] * turned.conj()).real.sum(-1) / head_dim**0.5
            weights = scores.softmax(dim=0)
            seen.append((weights.unsqueeze(-1) * values[past]).sum(0).flatten())
        x = x + apply(f"{layer}.output", torch.stack(seen))
        y = norm(f"{layer}.feedforward_norm", x)
        inner = gelu(apply(f"{layer}.feedforward.0", y))
        x = x + apply(f"{layer}.feedforward.2", inner)
    return norm("decoder.norm", x)


def reference_means(actor: TransformerActor, raw: Tensor, dones: Tensor) -> Tensor:
    """Return mean actions [t, n, -] of inputs [t, n, -] that `dones` [t, n] cut."""
    head = actor.mlp.weight.double(), actor.mlp.bias.double()
    means = []
    for world in range(raw.shape[1]):
        ends = (dones[:-1, world].nonzero().flatten() + 1).tolist()
        episodes = raw[:, world].tensor_split(ends)
        latents = [reference_latents(actor, episode) for episode in episodes]
        means.append(linear(torch.cat(latents), *head))
    return torch.stack(means, dim=1)
