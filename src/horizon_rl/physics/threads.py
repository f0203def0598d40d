"""Who owns the cores of a CPU while worlds are stepped."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from horizon_rl.physics.backend import Backend


@contextmanager
def cores_for_physics(backend: Backend) -> Iterator[None]:
    """Keep torch to one thread while the engine steps worlds on all cores.

    The task's tensors are small, but some of its operations would still fork to all
    cores and wait there for the engine's threads: a step of 256 worlds took 8 ms
    instead of 2 on a busy machine.
    """
    if backend.device.type != "cpu":
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
