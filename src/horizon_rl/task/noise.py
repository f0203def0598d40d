"""Randomness of the task as a function of place and time: nothing is drawn.

The same scenario meets the same noise, whichever scenarios share its batch, in whichever
world and on whichever device. A generator could not promise that, and a recorded step
would have to keep its state.
"""

import torch
from torch import Tensor

_MASK = 0xFFFFFFFF
_STRIDE = 0x9E3779B9
"""2^32 over the golden ratio: consecutive numbers land far apart."""


def symmetric_noise(
    key: int | Tensor, ids: Tensor, steps: Tensor, num_channels: int, first: int = 0
) -> Tensor:
    """Return numbers that look uniform in [-1, 1), [n, channels].

    Args:
        key: Seed of the whole, as `fold_seed` gives it.
        ids: [n] the scenarios' ids.
        steps: [n] steps since their episodes began.
        num_channels: Numbers per scenario and step.
        first: Channels to leave out before them.
    """
    moment = _scramble(_scramble(ids + key) + steps)
    ends = first + 1, first + num_channels + 1
    channels = torch.arange(*ends, device=ids.device) * _STRIDE
    bits = _scramble(moment.unsqueeze(1) + channels)
    # 24 bits fill a float32 exactly.
    return (bits >> 8).float() * 2.0**-23 - 1.0


def random_rows(
    key: int | Tensor, worlds: Tensor, step: Tensor, num_rows: int
) -> Tensor:
    """Return a row for each world, [n], that looks drawn from 0..num_rows - 1.

    Args:
        key: Seed of the whole, as `fold_seed` gives it; not that of the noise.
        worlds: [n] numbers of the worlds.
        step: Steps since everything began, a scalar.
        num_rows: How many rows there are; far fewer than 2^32.
    """
    return _scramble(_scramble(worlds + key) + step) % num_rows


def fold_seed(x: int) -> int:
    """Fold a seed of any size into 32 bits."""
    folded = 0
    while True:
        folded = int(_scramble(torch.tensor(folded + _STRIDE + (x & _MASK))))
        x >>= 32
        if x == 0:
            return folded


def _scramble(x: Tensor) -> Tensor:
    """Mix 32 bits so that every bit of the result depends on every bit of `x`.

    Wellons' "lowbias32", in 64-bit integers because torch has no unsigned shift.
    """
    x = x & _MASK
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & _MASK
    x = ((x ^ (x >> 15)) * 0x846CA68B) & _MASK
    return x ^ (x >> 16)
