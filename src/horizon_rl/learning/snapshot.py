"""Everything that learns, as named tensors: for rollback in memory, and checkpoints."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from horizon_rl.learning.ppo import Learner
from horizon_rl.support.errors import InputError


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A learner at one moment; later training does not change it."""

    tensors: dict[str, Tensor]
    """Copies of `state_tensors`."""
    learning_rate: float
    """Adam's step size."""


def take_snapshot(learner: Learner) -> Snapshot:
    """Copy everything that learns."""
    tensors = {name: value.clone() for name, value in state_tensors(learner).items()}
    return Snapshot(tensors, learner.learning_rate)


def restore(learner: Learner, snapshot: Snapshot) -> None:
    """Bring back a snapshot exactly, and drop rollout and histories.

    The environments must be reset by the caller. Randomness is not rewound.
    """
    load_state_tensors(learner, snapshot.tensors)
    learner.learning_rate = snapshot.learning_rate


def state_tensors(learner: Learner) -> dict[str, Tensor]:
    """Return the learner's own tensors, not copies, by name.

    `actor.*` and `critic.*` are weights, action noise and normalisers; `adam.*` the
    moments and the step counter of each parameter. The learning rate is a number, and
    stands in `learner.learning_rate`.
    """
    tensors = {}
    for prefix, model in learner.models.items():
        for name, value in model.state_dict().items():
            tensors[f"{prefix}.{name}"] = value
        for name, param in model.named_parameters():
            for key, value in learner.optimizer.state[param].items():
                tensors[f"adam.{prefix}.{name}.{key}"] = value
    return tensors


@torch.no_grad()
def load_state_tensors(learner: Learner, tensors: Mapping[str, Tensor]) -> None:
    """Copy tensors into a learner of the same shape; drop rollout and histories.

    A set without any `adam.*`, as shipped policies are, gives a fresh optimiser.

    Raises:
        InputError: A name is missing, unknown, or of another shape or type. Nothing was
            changed.
    """
    own = state_tensors(learner)
    moments = [own[name] for name in own if name.startswith("adam.")]
    if not any(name.startswith("adam.") for name in tensors):
        own = {k: value for k, value in own.items() if not k.startswith("adam.")}
    for name, value in own.items():
        if name not in tensors:
            raise InputError(f"'{name}' is missing")
        found, expected = describe(tensors[name]), describe(value)
        if found != expected:
            raise InputError(f"'{name}' is {found}; expected: {expected}")
    for name in tensors:
        if name not in own:
            raise InputError(f"'{name}' belongs to no part of this learner")
    for value in moments:
        value.zero_()
    for name, value in own.items():
        value.copy_(tensors[name])
    learner.forget()


def describe(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"
