"""What a training loop needs of something that learns, and its state as named tensors."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from tensordict import TensorDict
from torch import Tensor, nn

from horizon_rl.learning.config import LearnerCfg
from horizon_rl.learning.networks import Actor
from horizon_rl.support.errors import InputError
from horizon_rl.support.ranks import Ranks


class Algorithm(Protocol):
    """Collects `num_steps` steps of all worlds, learns from them, and starts over.

    A rollout is `act` and `process_env_step` in turn, then `compute_returns`; `update`
    learns from it. The tensors of `models` and of `optimizer_tensors` exist from the
    start and stay in place, for snapshots and checkpoints to read and write.
    """

    actor: Actor
    """The policy, for probes and export."""
    learning_rate: float
    num_steps: int
    """Steps that each world contributes to an update."""

    @property
    def models(self) -> Mapping[str, nn.Module]:
        """What learns, by name; `actor` is among them."""
        ...

    def optimizer_tensors(self) -> dict[str, Tensor]:
        """Return the optimiser's own tensors by name; all zeros are a fresh one."""
        ...

    def act(self, obs: TensorDict) -> Tensor:
        """Sample actions [n, -]; the first call after an update begins a rollout."""
        ...

    def process_env_step(
        self, obs: TensorDict, rewards: Tensor, dones: Tensor, extras: dict[str, Tensor]
    ) -> None:
        """Store what the actions led to.

        `extras` has `time_outs` [n]; and, in all steps or in none, `trains` [n]: 0 in
        worlds that nothing may be learnt from in this step, else 1.
        """

    def compute_returns(self, obs: TensorDict) -> None:
        """Finish a full rollout; `obs` follows its last step."""

    def update(self) -> dict[str, float]:
        """Learn from a full rollout and return figures about it.

        Raises:
            NonFiniteError: Learning was refused; the weights are finite.
        """
        ...

    def schedule(self, progress: float) -> None:
        """Follow schedules: a share of the run's env steps, in 0..1, is spent."""

    def forget(self) -> None:
        """Drop the rollout and the past of all worlds; what was learned stays."""


@runtime_checkable
class Scoring(Protocol):
    """What an algorithm has besides if it can train by a method that scores instances."""

    def value_losses(self) -> Tensor:
        """Return how much better every step of a finished rollout went than expected.

        [T, n], 0 where it went worse: the positive part of the advantage.
        """
        ...


@runtime_checkable
class Adversarial(Protocol):
    """What an algorithm has besides if it pushes the robots that it trains."""

    @property
    def pushes(self) -> Tensor | None:
        """[n, 2] to add to the trunks' horizontal velocities before the step that the
        last actions are for, world frame, m/s; None: nobody is pushed."""
        ...


Builder = Callable[[TensorDict, int, int, LearnerCfg, str, Ranks], Algorithm]
"""Makes an algorithm out of the arguments of `build_learner`."""
ActorBuilder = Callable[[TensorDict, int, LearnerCfg, int], Actor]
"""Makes an algorithm's actor alone out of the arguments of `build_policy`."""
B = TypeVar("B", bound=Builder)


class Registered(NamedTuple):
    """How to build an algorithm, to train, and its actor alone, to run a policy."""

    build: Builder
    build_actor: ActorBuilder | None
    """None: the actor is that of the settings."""


ALGORITHMS: dict[str, Registered] = {}
"""By the names that `LearnerCfg.algorithm` chooses them by."""


def register_algorithm(
    name: str, build_actor: ActorBuilder | None = None
) -> Callable[[B], B]:
    """Make a builder known by the name that `LearnerCfg.algorithm` chooses it by.

    Args:
        name: What to call it.
        build_actor: Builds its actor from the arguments of `build_policy`, if that is not
            the settings': policies are loaded from checkpoints with it.
    """

    def register(builder: B) -> B:
        ALGORITHMS[name] = Registered(builder, build_actor)
        return builder

    return register


class LearnerSnapshot(NamedTuple):
    """A learner at one moment; later training does not change it."""

    tensors: dict[str, Tensor]
    """Copies of `state_tensors`."""
    learning_rate: float


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
    check_tensors(tensors, own)
    for value in moments.values():
        value.zero_()
    for name, value in own.items():
        value.copy_(tensors[name])
    learner.forget()


def check_tensors(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Refuse tensors that have not the names, shapes and types of the expected ones."""

    def describe(tensors: Mapping[str, Tensor], name: str) -> str:
        if name not in tensors:
            return "missing"
        kind = str(tensors[name].dtype).removeprefix("torch.")
        return f"{tuple(tensors[name].shape)} {kind}"

    for name in (*expected, *found):
        is_there, should_be = describe(found, name), describe(expected, name)
        if is_there != should_be:
            raise InputError(f"'{name}' is {is_there}; expected: {should_be}")
