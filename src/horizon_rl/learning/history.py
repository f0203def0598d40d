"""The past of n worlds: as raw inputs, which outlive an update, and as a live cache."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


class History(NamedTuple):
    """What happened before: enough to compute keys and values with any weights."""

    raw: Tensor
    """[n, reach, inputs] the last inputs, not normalised, oldest first."""
    first: Tensor
    """[n] slot at which the running episode began; `reach` if nothing precedes."""


class RolloutPast(NamedTuple):
    """What an update must know beside a rollout's observations [T, n]."""

    raw: Tensor
    """[n, reach, inputs] what came before it."""
    first: Tensor
    """[n, T] slot at which each step's episode began; step 0 is in slot `reach`."""


def rollout_past(history: History, cuts: Tensor) -> RolloutPast:
    """Return the past of a rollout whose episodes end where `cuts` [T, n] is true."""
    reach, num_steps = history.raw.shape[1], len(cuts)
    slots = torch.arange(reach + 1, reach + num_steps, device=cuts.device)
    later = slots.unsqueeze(1) * cuts[:-1]
    first = torch.cat((history.first.unsqueeze(0), later)).cummax(dim=0).values
    return RolloutPast(history.raw, first.T)


@dataclass(kw_only=True)
class Memory:
    """The past of n worlds that an actor acts with; this one is empty."""

    num_worlds: int
    num_steps: int = 0
    """Steps added since it was filled."""

    @property
    def is_full(self) -> bool:
        return False

    def reset(self, mask: Tensor) -> None:
        """End the episodes of the worlds in `mask` [n]: they see nothing older."""

    def forget(self) -> None:
        """End the episodes of all worlds, and leave nothing of them."""

    def history(self) -> History | None:
        """Return the past as raw inputs: a view, as it is until the memory is filled."""


@dataclass(kw_only=True)
class Cache(Memory):
    """Keys and values of the past, which grow by one token per step.

    Slots are in order of time: the window is a view that slides along them, and nothing
    is shifted or rotated again. When they are used up the actor fills the cache again
    from the raw inputs, as it does at the start of every rollout. The tensors stay
    where they are: a recorded step must find them there.
    """

    raw: Tensor
    """[n, reach + room, inputs]"""
    keys: list[Tensor]
    """Per layer [n, heads, window + room, head_dim], rotated by their slot."""
    values: list[Tensor]
    """Per layer [n, heads, window + room, head_dim]."""
    first: Tensor
    """[n] slot of `raw` at which the running episode began, or will begin."""
    reach: int
    """Slots of `raw` that are history."""
    window: int
    """Past tokens a layer attends to."""

    @property
    def slot(self) -> int:
        """Where the next token goes."""
        return self.reach + self.num_steps

    @property
    def is_full(self) -> bool:
        return self.slot == self.raw.shape[1]

    def reset(self, mask: Tensor) -> None:
        self.first.masked_fill_(mask, self.slot)

    def forget(self) -> None:
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
        now, end = self.num_steps, self.num_steps + self.window + 1
        self.keys[layer][:, :, end - 1] = keys.squeeze(2)
        self.values[layer][:, :, end - 1] = values.squeeze(2)
        return self.keys[layer][:, :, now:end], self.values[layer][:, :, now:end]

    def history(self) -> History:
        raw = self.raw[:, self.num_steps : self.slot]
        return History(raw, (self.first - self.num_steps).clamp(min=0))
