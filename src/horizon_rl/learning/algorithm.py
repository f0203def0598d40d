"""What a training loop needs of something that learns from rollouts."""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from tensordict import TensorDict
from torch import Tensor, nn

from horizon_rl.learning.actor import Actor
from horizon_rl.learning.config import LearnerCfg
from horizon_rl.support.errors import InputError, unknown
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
        """Store what the actions led to; `extras` has `time_outs` [n]."""

    def compute_returns(self, obs: TensorDict) -> None:
        """Finish a full rollout; `obs` follows its last step."""

    def update(self) -> dict[str, float]:
        """Learn from a full rollout and return figures about it.

        Raises:
            NonFiniteError: Learning was refused; the weights are finite.
        """
        ...

    def cut(self, mask: Tensor) -> None:
        """End the episodes of worlds `mask` [n] that were reset without a `done`."""

    def forget(self) -> None:
        """Drop the rollout and the past of all worlds; what was learned stays."""


Builder = Callable[[TensorDict, int, int, LearnerCfg, str, Ranks], Algorithm]
"""Makes an algorithm out of the arguments of `build_learner`."""
B = TypeVar("B", bound=Builder)

_builders: dict[str, Builder] = {}


def register_algorithm(name: str) -> Callable[[B], B]:
    """Make a builder known by the name that `LearnerCfg.algorithm` chooses it by."""

    def register(builder: B) -> B:
        _builders[name] = builder
        return builder

    return register


def find_algorithm(name: str) -> Builder:
    """Return the builder registered by this name; another name is refused."""
    if name not in _builders:
        raise InputError(unknown("algorithm", name, _builders))
    return _builders[name]
