"""Everything that learns, as named tensors: for rollback in memory, and checkpoints."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from horizon_rl.learning.algorithm import Algorithm
from horizon_rl.support.errors import InputError


@dataclass(frozen=True, eq=False)
class LearnerSnapshot:
    """A learner at one moment; later training does not change it."""

    tensors: dict[str, Tensor]
    """Copies of `state_tensors`."""
    learning_rate: float
    """The optimiser's step size."""


def take_snapshot(learner: Algorithm) -> LearnerSnapshot:
    """Copy everything that learns."""
    tensors = {name: value.clone() for name, value in state_tensors(learner).items()}
    return LearnerSnapshot(tensors, learner.learning_rate)


def restore(learner: Algorithm, snapshot: LearnerSnapshot) -> None:
    """Bring back a snapshot exactly, and drop rollout and histories.

    The environments must be reset by the caller. Randomness is not rewound.
    """
    load_state_tensors(learner, snapshot.tensors)
    learner.learning_rate = snapshot.learning_rate


def state_tensors(learner: Algorithm) -> dict[str, Tensor]:
    """Return the learner's own tensors, not copies, by name.

    Of PPO, `actor.*` and `critic.*` are weights, action noise and normalisers, `adam.*`
    the moments and the step counter of each parameter. The learning rate is a number:
    `learner.learning_rate`.
    """
    weights = {
        f"{prefix}.{name}": value
        for prefix, model in learner.models.items()
        for name, value in model.state_dict().items()
    }
    return weights | learner.optimizer_tensors()


@torch.no_grad()
def load_state_tensors(learner: Algorithm, tensors: Mapping[str, Tensor]) -> None:
    """Copy tensors into a learner of the same shape; drop rollout and histories.

    A set without any of the optimiser's, as shipped policies are, gives a fresh one.

    Raises:
        InputError: A name is missing, unknown, or of another shape or type. Nothing was
            changed.
    """
    own, moments = state_tensors(learner), learner.optimizer_tensors()
    if not moments.keys() & tensors.keys():
        own = {name: value for name, value in own.items() if name not in moments}
    for name, value in own.items():
        if name not in tensors:
            raise InputError(f"'{name}' is missing")
        found, expected = describe(tensors[name]), describe(value)
        if found != expected:
            raise InputError(f"'{name}' is {found}; expected: {expected}")
    for name in tensors:
        if name not in own:
            raise InputError(f"'{name}' belongs to no part of this learner")
    for value in moments.values():
        value.zero_()
    for name, value in own.items():
        value.copy_(tensors[name])
    learner.forget()


def describe(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"
