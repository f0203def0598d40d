"""The past of n worlds: as raw inputs, which outlive an update, and as a live cache."""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from horizon_rl.learning.config import TransformerCfg


class Memory(Protocol):
    """What an actor remembers of n worlds from one step to the next."""

    num_worlds: int

    def reset(self, mask: Tensor) -> None:
        """End the episodes of the worlds in `mask` [n]: they see nothing older."""


class History(NamedTuple):
    """What happened before: enough to compute keys and values with any weights."""

    raw: Tensor
    """[n, reach, inputs] the last inputs, not normalised, oldest first."""
    first: Tensor
    """[n] slot at which the running episode began; `reach` if nothing precedes. Of a
    rollout that follows, [n, T] for each of its steps; step 0 is in slot `reach`."""

    def with_rollout(self, cuts: Tensor) -> "History":
        """Return the past of a rollout whose episodes end where `cuts` [T, n] is true."""
        reach, num_steps = self.raw.shape[1], len(cuts)
        slots = torch.arange(reach + 1, reach + num_steps, device=cuts.device)
        later = slots.unsqueeze(1) * cuts[:-1]
        first = torch.cat((self.first.unsqueeze(0), later)).cummax(dim=0).values
        return History(self.raw, first.T)


class Cache:
    """Keys and values of the past, which grow by one token per step.

    The places of a window are used in turn, so that nothing is shifted or rotated again
    and a step reads one piece of memory: with a view that slides along more places it
    takes three times as long on a CPU. Raw inputs lie in order of time. When their room
    is used up the actor fills the cache again from them, as it does at the start of
    every rollout. The tensors stay where they are: a recorded step must find them there.
    """

    # Buffers made in inference mode could not be written outside of it.
    @torch.inference_mode(False)
    def __init__(
        self,
        cfg: TransformerCfg,
        num_worlds: int,
        num_inputs: int,
        room: int,
        device: torch.device,
        num_views: int = 1,
    ):
        """Make room for this many steps of worlds that have no past.

        Args:
            cfg: Layers, heads and window.
            num_worlds: How many.
            num_inputs: Numbers that the actor reads of a world.
            room: Steps until it must be filled again.
            device: Where.
            num_views: Times that the actor sees a world, with keys and values each time.
        """
        self.num_worlds, self.reach, self.window = num_worlds, cfg.reach, cfg.window
        self.num_steps = 0
        """Steps added since it was filled."""
        shape = (
            num_views * num_worlds,
            cfg.num_heads,
            cfg.window + 1,
            cfg.head_dim,
        )
        layers = range(cfg.num_layers)
        self.raw = torch.zeros(num_worlds, cfg.reach + room, num_inputs, device=device)
        self.keys = [torch.zeros(shape, device=device) for _ in layers]
        """Per layer, rotated by their slot; see `held`."""
        self.values = [torch.zeros(shape, device=device) for _ in layers]
        self.first = torch.full((num_worlds,), cfg.reach, device=device)
        """[n] slot of `raw` at which the running episode began, or will begin."""

    @property
    def slot(self) -> int:
        """Where the next token goes."""
        return self.reach + self.num_steps

    def held(self, slots: Tensor) -> Tensor:
        """Say which slot each place of the window holds once the next token is added.

        Args:
            slots: [window + 1] the slots from 0 on, where the cache is.
        """
        oldest = self.slot - self.window
        return oldest + (slots - self.num_steps) % (self.window + 1)

    @property
    def is_full(self) -> bool:
        return self.slot == self.raw.shape[1]

    def reset(self, mask: Tensor) -> None:
        """End the episodes of the worlds in `mask` [n]: they see nothing older."""
        self.first.masked_fill_(mask, self.slot)

    def forget(self) -> None:
        """End the episodes of all worlds, and leave nothing of them."""
        # Not only unseen but gone: a NaN would outlive any weight of 0.
        for tensor in (self.raw, *self.keys, *self.values):
            tensor.zero_()
        self.first.fill_(self.reach)
        self.num_steps = 0

    def fill(self, history: History, memory: list[tuple[Tensor, Tensor]]) -> None:
        """Take a past and, per layer, its keys and values; all room is free again."""
        # A copy between, since the history may be a view of where it goes.
        self.raw[:, : self.reach] = history.raw.clone()
        self.first.copy_(history.first)
        for layer, (keys, values) in enumerate(memory):
            self.keys[layer][:, :, : self.window] = keys
            self.values[layer][:, :, : self.window] = values
        self.num_steps = 0

    def add(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add the current token of a layer; return its window, itself included."""
        place = (self.num_steps + self.window) % (self.window + 1)
        self.keys[layer][:, :, place] = keys.squeeze(2)
        self.values[layer][:, :, place] = values.squeeze(2)
        return self.keys[layer], self.values[layer]

    def history(self) -> History:
        """Return the past as raw inputs: a view, as it is until the cache is filled."""
        raw = self.raw[:, self.num_steps : self.slot]
        return History(raw, (self.first - self.num_steps).clamp(min=0))
