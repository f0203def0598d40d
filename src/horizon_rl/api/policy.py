"""A policy as a function of numpy arrays."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from horizon_rl.support.errors import InputError, needs_extra

with needs_extra("train"):
    import torch
    from tensordict import TensorDict

    from horizon_rl.policies.load import (
        EvaluatedPolicy,
        as_policy,
        check_actions,
        load_policy,
    )
    from horizon_rl.task import NUM_ACTOR


class NumpyPolicy:
    """A policy that remembers the past of the robots it acts for.

    Call it with the observations of every control step, 50 a second, and `reset` it when
    episodes begin.
    """

    def __init__(self, source: EvaluatedPolicy, device: str = "cpu"):
        """Take a policy as an evaluation does."""
        self.source = source
        self._device = torch.device(device)
        self.reset()

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def action_scale(self) -> float | None:
        """Joint target = default pose + this times the action, rad; None: the task's."""
        return self.source.action_scale

    def reset(self, mask: np.ndarray | None = None) -> None:
        """Forget the past: of all robots, or of those where `mask` [n] is true."""
        if mask is None:
            self._policy = self.source.make(self._device)
            self._num_robots = None
            return
        flags = np.asarray(mask)
        if self._num_robots is not None and flags.shape != (self._num_robots,):
            raise InputError(
                f"a mask of shape {flags.shape}; accepted: ({self._num_robots},)"
            )
        if flags.dtype != bool:
            raise InputError(
                f"a mask of {flags.dtype}; accepted: True or False for each robot, as in "
                "`terminated | truncated`, and not their numbers"
            )
        if self._num_robots is not None:
            self._policy.reset(torch.from_numpy(flags.copy()).to(self._device))

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Return actions [12] or [n, 12], float32, for observations [45] or [n, 45]."""
        given = np.asarray(observations, dtype=np.float32)
        if given.ndim not in (1, 2) or given.shape[-1] != NUM_ACTOR:
            raise InputError(
                f"observations of shape {given.shape}; accepted: ({NUM_ACTOR},) or "
                f"(n, {NUM_ACTOR}), in the order of docs/task.md"
            )
        batch = given.reshape(-1, NUM_ACTOR)
        if self._num_robots is None:
            self._num_robots = len(batch)
            self._policy.reset(torch.ones(len(batch), dtype=torch.bool))
        if len(batch) != self._num_robots:
            raise InputError(
                f"obs has {len(batch)} robots, the memory is of {self._num_robots}: call "
                "policy.reset() first"
            )
        seen = torch.from_numpy(batch.copy()).to(self._device)
        actions = self._policy.act(TensorDict({"actor": seen}, [len(batch)]))
        check_actions(actions, len(batch))
        return actions.cpu().numpy().reshape(*given.shape[:-1], -1)

    def __repr__(self) -> str:
        return f"NumpyPolicy({self.name!r})"


def load(source: str | Path | Callable[..., Any], device: str = "cpu") -> NumpyPolicy:
    """Load a policy.

    Args:
        source: A name of `horizon models` ("core"), the directory of a run or
            checkpoint, an .onnx file, FILE.py:NAME, or a function of observations
            [n, 45] that returns actions [n, 12].
        device: Where a network computes: cpu, cuda, cuda:1, ...
    """
    return NumpyPolicy(find_policy(source), device)


def find_policy(source: Any) -> EvaluatedPolicy:
    """Return a policy in any of the forms that `load` and `evaluate` take."""
    if isinstance(source, NumpyPolicy):
        return source.source
    if isinstance(source, str | Path):
        return load_policy(str(source))
    policy = as_policy(source)
    name = getattr(source, "__name__", type(source).__name__)
    return EvaluatedPolicy(name, lambda device: policy, is_shared=True)
