"""GRAM's networks: who knows the instance, who guesses it, and how sure the guess is.

Actor and critic read a latent beside their observations. In training it comes from the
context, an encoder of the instance's parameters; a deployed policy guesses it from its
history, and falls back to the latent 0, the robust mode, where an epinet is uncertain.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import log
from typing import Any

import torch
from rsl_rl.models import MLPModel
from rsl_rl.modules import HiddenState
from tensordict import TensorDict
from torch import Tensor, nn

from horizon_rl.learning.config import CriticCfg, GramCfg, MlpCfg
from horizon_rl.learning.networks import Actor

LATENT = "latent"
"""Group of observations [n, latent_dim]: what actor and critic are told."""
SMALL_GAIN = 1e-4
"""Of last layers that start near 0."""
MAX_ANGLE = 5.0
"""Bound on the mean of the adversary's angle, rad."""


def adaptation(spread: Tensor, quantiles: Tensor) -> Tensor:
    """Return alpha in 0..1: how much of a guessed latent is trusted.

    It is 1 up to the usual spread, and falls exponentially beyond: to 0.01 where only one
    in a hundred usual steps lies.

    Args:
        spread: Of guesses, of any shape.
        quantiles: [2] of the spreads in distribution: the 0.90 and the 0.99 quantile.
            Both 0, as before a calibration: nothing is trusted.
    """
    low, high = quantiles.unbind()
    excess = (spread - low).clamp(min=0.0) / (high - low).clamp(min=1e-12)
    return torch.exp(-log(100.0) * excess)


class Window:
    """The last normalised observations of n worlds, zeros before an episode's start."""

    # Buffers made in inference mode could not be written outside of it.
    @torch.inference_mode(False)
    def __init__(self, num_worlds: int, length: int, width: int, device: Any):
        self.num_worlds = num_worlds
        self.seen = torch.zeros(num_worlds, length, width, device=device)
        """[n, length, width], oldest first."""

    def add(self, seen: Tensor) -> Tensor:
        """Add observations [n, width]; return the whole, [n, length * width]."""
        self.seen.copy_(torch.cat((self.seen[:, 1:], seen.unsqueeze(1)), dim=1))
        return self.seen.flatten(1)

    def reset(self, mask: Tensor) -> None:
        """End the episodes of the worlds in `mask` [n]."""
        self.seen.masked_fill_(mask.bool()[:, None, None], 0.0)

    def forget(self) -> None:
        """End the episodes of all worlds."""
        self.seen.zero_()


class Epinet(nn.Module):
    """A function of inputs x and an epistemic index, linear in the latter: g(x, i) i.

    Osband et al. 2023. An MLP of [x, i] gives a matrix, which multiplies the index.
    """

    def __init__(self, num_inputs: int, cfg: GramCfg, gain: float):
        """Build it for indices that are as wide as the latent; `gain` is the last layer's."""
        super().__init__()
        first, second = cfg.epinet_dims
        self.width, self.num_inputs = cfg.latent_dim, num_inputs
        self.first = nn.Linear(num_inputs + self.width, first)
        self.rest = nn.Sequential(
            nn.ELU(),
            nn.Linear(first, second),
            nn.ELU(),
            nn.Linear(second, self.width * self.width),
        )
        _initialise([self.first, *self.rest], gain)

    def forward(self, x: Tensor, indices: Tensor) -> Tensor:
        """Return values [..., k, latent] at inputs [..., -] for indices [k, latent]."""
        # Apart, since all inputs share the indices: side by side they were k times x.
        of_x, of_index = self.first.weight.split((self.num_inputs, self.width), dim=1)
        hidden = (x @ of_x.T + self.first.bias).unsqueeze(-2) + indices @ of_index.T
        matrices = self.rest(hidden).unflatten(-1, (self.width, self.width))
        return (matrices * indices.unsqueeze(-2)).sum(dim=-1)


class HistoryEncoder(nn.Module):
    """A guess of the latent from recent observations, and its spread."""

    indices: Tensor
    quantiles: Tensor

    def __init__(self, width: int, cfg: GramCfg):
        """Build it for histories of observations of this width."""
        super().__init__()
        num_inputs, *dims = cfg.history * width, *cfg.history_dims
        self.length = cfg.history
        layers = [nn.Linear(a, b) for a, b in pairwise((num_inputs, *dims))]
        self.trunk = nn.Sequential(*(m for one in layers for m in (one, nn.ELU())))
        self.head = nn.Linear(dims[-1], cfg.latent_dim)
        _initialise([*self.trunk, self.head], SMALL_GAIN)
        self.epinet = Epinet(num_inputs + dims[-1], cfg, SMALL_GAIN)
        self.prior = Epinet(num_inputs + dims[-1], cfg, 1.0).requires_grad_(False)
        # Drawn once: a policy must act the same whenever it sees the same.
        indices = torch.randn(cfg.epinet_samples, cfg.latent_dim)
        self.register_buffer("indices", indices)
        self.register_buffer("quantiles", torch.zeros(2))

    def forward(self, history: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Return guesses [..., latent], and what indices [k, -] add, [..., k, latent].

        Where the epinet has learnt to cancel its prior, they add nothing.
        """
        features = self.trunk(history)
        seen = torch.cat((history, features), dim=-1).detach()
        added = self.epinet(seen, indices) - self.prior(seen, indices)
        return self.head(features), added

    def guess(self, history: Tensor) -> tuple[Tensor, Tensor]:
        """Return guesses [..., latent] and spreads [...] by the policy's own indices."""
        latent, added = self(history, self.indices)
        return latent, added.var(dim=-2).sum(dim=-1)

    def trusted(self, history: Tensor) -> Tensor:
        """Return the latents [..., latent] of a deployed policy."""
        latent, spread = self.guess(history)
        return adaptation(spread, self.quantiles).unsqueeze(-1) * latent


class GramActor(Actor):
    """An MLP of observations and a latent: the one it is given, else its own guess."""

    kind = "gram"

    def __init__(self, obs: TensorDict, num_actions: int, cfg: MlpCfg, gram: GramCfg):
        """Build it for the groups of `obs` that the settings name."""
        self.latent_dim = gram.latent_dim
        super().__init__(obs, num_actions, cfg, cfg.hidden_dims, cfg.activation)
        self.window = gram.history - 1
        self.history = HistoryEncoder(self.obs_dim, gram)
        self.live: Window | None = None

    def get_latent(self, obs: TensorDict, *_: Any, **__: Any) -> Tensor:
        seen = self.normalise(obs)
        if LATENT in obs.keys():
            return torch.cat((seen, obs[LATENT]), dim=-1)
        self.live = self._ready(self.live, seen)
        return self._latent_of(seen, self.live)

    def reset(
        self, dones: Tensor | None = None, hidden_state: HiddenState = None
    ) -> None:
        if self.live is not None:
            self.live.forget() if dones is None else self.live.reset(dones)

    def mean_step(
        self, obs: TensorDict, memory: Window | None
    ) -> tuple[Tensor, Window]:
        seen = self.normalise(obs)
        memory = self._ready(memory, seen)
        return self.mlp(self._latent_of(seen, memory)), memory

    def normalise(self, obs: TensorDict) -> Tensor:
        """Return observations [..., -] as networks read them."""
        return self.obs_normalizer(self._inputs(obs))

    def _latent_of(self, seen: Tensor, window: Window) -> Tensor:
        return torch.cat((seen, self.history.trusted(window.add(seen))), dim=-1)

    def _ready(self, window: Window | None, seen: Tensor) -> Window:
        if window is None or window.num_worlds != len(seen):
            return Window(len(seen), self.history.length, self.obs_dim, seen.device)
        return window

    def _get_latent_dim(self) -> int:
        return self.obs_dim + self.latent_dim


class GramCritic(MLPModel):
    """A value from observations, normalised, and the latent."""

    def __init__(self, obs: TensorDict, cfg: CriticCfg, latent_dim: int):
        self.latent_dim, groups = latent_dim, {"critic": list(cfg.obs_groups)}
        dims, kind = cfg.hidden_dims, cfg.activation
        super().__init__(obs, groups, "critic", 1, dims, kind, obs_normalization=True)

    def get_latent(self, obs: TensorDict, *_: Any, **__: Any) -> Tensor:
        return torch.cat((super().get_latent(obs), obs[LATENT]), dim=-1)

    def _get_latent_dim(self) -> int:
        return self.obs_dim + self.latent_dim


class ContextEncoder(MLPModel):
    """The latent of an instance, from its parameters.

    These are normalised by what training meets, narrow ranges or wide ones: unlike the
    critic's encoder, it is never asked beyond them.
    """

    def __init__(self, obs: TensorDict, groups: Sequence[str], cfg: GramCfg):
        super().__init__(
            obs,
            {"context": list(groups)},
            "context",
            cfg.latent_dim,
            cfg.context_dims,
            obs_normalization=True,
        )
        _initialise(self.mlp, SMALL_GAIN)


class Adversary(Actor):
    """The angle of a push, from what the actor sees; and what its training remembers."""

    iteration: Tensor
    rate: Tensor

    def __init__(self, obs: TensorDict, groups: tuple[str, ...], cfg: GramCfg):
        reads = MlpCfg(obs_groups=groups, initial_std=1.0, std_parameter="log")
        super().__init__(obs, 1, reads, cfg.adversary_dims, "elu")
        _initialise(self.mlp, SMALL_GAIN)
        self.mlp: Any = nn.Sequential(self.mlp, nn.Hardtanh(-MAX_ANGLE, MAX_ANGLE))
        self.register_buffer("iteration", torch.zeros((), dtype=torch.long))
        self.register_buffer("rate", torch.tensor(cfg.adversary_rate))


def _initialise(layers: Any, last_gain: float) -> None:
    """Draw weights as GRAM's authors do: Xavier's normal, biases 0."""
    linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
    for layer in linear:
        gain = last_gain if layer is linear[-1] else 1.0
        nn.init.xavier_normal_(layer.weight, gain=gain)
        nn.init.zeros_(layer.bias)
