"""The transformer actor, as a recurrent model that plugs into rsl_rl.

It has two ways to look at the past. Acting, it adds one token per step to a live cache.
In the update it gets whole rollouts with the raw inputs before them, embeds those with
the current weights and normaliser, and lets no gradient into their keys and values.

With several layers, a layer attends to a window of *its own* inputs, as in any
sliding-window transformer: what it saw reaches `num_layers * window` steps back. So
many raw inputs are kept, and therefore acting, update, evaluation and an exported file
compute the same function, whenever the cache was last rebuilt.
"""

import torch
from rsl_rl.modules import HiddenState
from tensordict import TensorDict
from torch import Tensor, nn

from horizon_rl.learning.attention import Decoder, rotate, rotation_table, visible
from horizon_rl.learning.config import TransformerCfg
from horizon_rl.learning.history import Cache, History
from horizon_rl.learning.mirror import OneView
from horizon_rl.learning.networks import Actor

WINDOWS = 4
"""Windows of steps that a policy acts between two times that it rebuilds its cache."""


class TransformerActor(Actor):
    """Inputs of the recent past in, an action's distribution out."""

    is_recurrent = True
    kind = "transformer"
    rotation: Tensor
    slots: Tensor

    def __init__(
        self,
        obs: TensorDict,
        num_actions: int,
        cfg: TransformerCfg,
        max_steps: int = 24,
        view: OneView | None = None,
    ):
        """Build the model for the shapes of `obs`, and rollouts of up to `max_steps`."""
        self.latent_dim = cfg.embedding_dim
        # The base class's head is replaced below.
        super().__init__(obs, num_actions, cfg, (1,), "gelu", view)
        self.cfg, self.max_steps, self.window = cfg, max_steps, cfg.window
        num_features = self.obs_dim + self.encoder_dim
        self.embedding = nn.Linear(num_features, cfg.embedding_dim)
        self.decoder = Decoder(cfg)
        # A linear head in place of the base class's MLP. It starts near zero: the
        # decoder's output has unit variance, and the robot should start by standing.
        self.mlp = nn.Linear(cfg.embedding_dim, num_actions)
        nn.init.orthogonal_(self.mlp.weight, gain=0.01)
        nn.init.zeros_(self.mlp.bias)
        # A cache has room for a rollout, a policy's own for some windows.
        num_slots = cfg.reach + max(max_steps, WINDOWS * cfg.window)
        table = rotation_table(num_slots, cfg.head_dim, cfg.rope_base)
        self.register_buffer("rotation", table, persistent=False)
        self.register_buffer("slots", torch.arange(num_slots), persistent=False)
        self.live: Cache | None = None

    # What rsl_rl calls.

    def get_latent(
        self,
        obs: TensorDict,
        masks: Tensor | None = None,
        hidden_state: HiddenState = None,
    ) -> Tensor:
        """Return latents of the next step [num_views * n, -], or after a `History`."""
        raw = self._inputs(obs)
        if hidden_state is not None:
            past = History(*hidden_state)
            return self.decode(raw.transpose(0, 1), past).transpose(0, 1)
        if self.live is None or self.live.is_full:
            self.begin_rollout(len(raw))
        assert self.live is not None
        return self.step(raw, self.live)

    def reset(
        self, dones: Tensor | None = None, hidden_state: HiddenState = None
    ) -> None:
        """End the episodes that are done; without `dones`, those of all worlds."""
        if self.live is not None and dones is None:
            self.live.forget()
        elif self.live is not None and dones is not None:
            self.live.reset(dones.bool())

    def _get_latent_dim(self) -> int:
        return self.latent_dim

    # Step by step.

    def begin_rollout(self, num_worlds: int) -> History:
        """Rebuild the live cache, since an update may have changed the weights.

        Otherwise keys of older weights would act in the rollout and new ones stand in
        the update: the probability ratio would not start at 1.
        """
        self.live = self.renew(self.live, num_worlds, self.max_steps)
        return self.live.history()

    def set_step(self, step: int) -> None:
        assert self.live is not None
        self.live.num_steps = step

    def mean_step(self, obs: TensorDict, memory: Cache | None) -> tuple[Tensor, Cache]:
        raw = self._inputs(obs)
        if memory is None or memory.is_full:
            # Once in `WINDOWS` windows: it embeds a whole reach again.
            memory = self.renew(memory, len(raw), WINDOWS * self.window)
        return self.act_on(self.step(raw, memory)), memory

    def renew(self, cache: Cache | None, num_worlds: int, room: int) -> Cache:
        """Free all room of a cache, keeping its past; or make one for `room` steps."""
        if cache is None or cache.num_worlds != num_worlds:
            device = self.embedding.weight.device
            shape = num_worlds, self.num_inputs, room
            return Cache(self.cfg, *shape, device, self.view.num_views)
        history = cache.history()
        cache.fill(history, self.remember(*self._all_views(history)))
        return cache

    @torch.no_grad()
    def step(self, raw: Tensor, cache: Cache) -> Tensor:
        """Add inputs [n, -] to a cache with room; return latents [num_views * n, -]."""
        now = cache.slot
        cache.raw[:, now] = raw
        rotation = self.rotation[:, now : now + 1]
        # As `visible` says: what is held is neither later nor too old.
        held = cache.held(self.slots[: self.cfg.window + 1])
        first = cache.first.clamp(max=now).repeat(self.view.num_views)
        mask = (held >= first.unsqueeze(1))[:, None, None]

        def extend(layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
            return cache.add(layer, rotate(keys, rotation), values)

        tokens = self.embed(self.view.add_views(raw, dim=0).unsqueeze(1))
        latent = self.decoder(tokens, rotation, mask, extend).squeeze(1)
        cache.num_steps += 1
        return latent

    # Whole rollouts.

    def decode(self, raw: Tensor, past: History) -> Tensor:
        """Return latents [num_views * n, T, -] of rollouts [n, T, -] that follow a past."""
        raw, past = self.view.add_views(raw, dim=0), self._all_views(past)
        reach, window = self.cfg.reach, self.cfg.window
        end = reach + raw.shape[1]
        memory = self.remember(past.raw, past.first[:, 0])
        rotation = self.rotation[:, reach:end]
        keys_seen = self.slots[reach - window : end]
        mask = visible(self.slots[reach:end], keys_seen, past.first, window)

        def extend(layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
            old_keys, old_values = memory[layer]
            keys = torch.cat((old_keys, rotate(keys, rotation)), dim=2)
            return keys, torch.cat((old_values, values), dim=2)

        return self.decoder(self.embed(raw), rotation, mask, extend)

    @torch.no_grad()
    def remember(self, raw: Tensor, first: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return each layer's keys, rotated, and values for the last window of a past.

        A layer needs one window less than the layer below it: of the topmost layer only
        keys and values are computed, and with one layer there is no attention at all.

        Args:
            raw: [n, reach, inputs] the past.
            first: [n] slot at which its last episode began.
        """
        reach, window = self.cfg.reach, self.cfg.window
        slots, rotation = self.slots[:reach], self.rotation[:, :reach]
        x = self.embed(raw)
        memory = []
        for layer in self.decoder.layers:
            keys, values = layer.keys_values(x)
            keys = rotate(keys, rotation)
            memory.append((keys[:, :, -window:], values[:, :, -window:]))
            if len(memory) == self.cfg.num_layers:
                break
            mask = visible(slots[window:], slots, first.unsqueeze(1), window)
            slots, rotation, x = slots[window:], rotation[:, window:], x[:, window:]
            x = layer(x, rotation, keys, values, mask)
        return memory

    def _all_views(self, past: History) -> History:
        repeats = (self.view.num_views, *[1] * (past.first.ndim - 1))
        return History(self.view.add_views(past.raw, 0), past.first.repeat(repeats))

    def embed(self, raw: Tensor) -> Tensor:
        """Return tokens [..., dim] of raw inputs [..., inputs]."""
        return self.embedding(self.features(raw))
