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
    later = torch.where(cuts[:-1], slots.unsqueeze(1), 0)
    first = torch.cat((history.first.unsqueeze(0), later)).cummax(dim=0).values
    return RolloutPast(history.raw, first.T)


@dataclass
class Cache:
    """The live past of n worlds, which grows by one token per step.

    Slots are in order of time and are never reused: the window is a view that slides
    along them, and nothing is shifted or rotated again. When they are used up the actor
    makes a new cache out of the raw inputs, as it does at the start of every rollout.
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
    num_steps: int = 0
    """Tokens added."""

    @property
    def num_worlds(self) -> int:
        return len(self.raw)

    @property
    def slot(self) -> int:
        """Where the next token goes."""
        return self.reach + self.num_steps

    @property
    def is_full(self) -> bool:
        return self.slot == self.raw.shape[1]

    def reset(self, mask: Tensor) -> None:
        """End the episodes of the worlds in `mask` [n]: they see nothing older."""
        # Not in place: the cache may be used in inference mode and out of it.
        self.first = torch.where(mask, self.slot, self.first)

    def add(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add the current token of a layer; return its window, itself included."""
        now, end = self.num_steps, self.num_steps + self.window + 1
        self.keys[layer][:, :, end - 1] = keys.squeeze(2)
        self.values[layer][:, :, end - 1] = values.squeeze(2)
        return self.keys[layer][:, :, now:end], self.values[layer][:, :, now:end]

    def history(self) -> History:
        """Return the past as raw inputs: a view that later steps leave as it is."""
        raw = self.raw[:, self.num_steps : self.slot]
        return History(raw, (self.first - self.num_steps).clamp(min=0))
