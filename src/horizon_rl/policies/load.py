"""Any policy under one interface: checkpoints, ONNX files, Python functions."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tensordict import TensorDict

from horizon_rl.domains import Catalogue
from horizon_rl.policies.learned import LearnedPolicy, load_actor
from horizon_rl.policies.shipped import STAND, find_checkpoint, model_names
from horizon_rl.support.errors import InputError, blame, guess, needs_extra
from horizon_rl.support.named_code import find_code
from horizon_rl.support.records import decode, dumps
from horizon_rl.task import NUM_ACTIONS
from horizon_rl.task import Policy as Policy

ACCEPTED = (
    "a name of `horizon models`, a checkpoint or run directory, an .onnx file, "
    f"FILE.py:NAME or MODULE:NAME of a Python function, or {STAND}"
)


@dataclass(frozen=True, eq=False)
class EvaluatedPolicy:
    """A policy, and what identifies it."""

    name: str
    make: Callable[[torch.device], Policy]
    """Returns it on a device, with no past: also one whose episodes have all ended may
    have traces of it in the last bit. Every call makes one of its own, unless it is
    shared."""
    digest: str | None = None
    """Content hash; None for Python code, whose results are therefore not kept."""
    action_scale: float | None = None
    """Joint target = default pose + this times the action, rad; None: the suite's."""
    is_shared: bool = False
    """Whether `make` returns one and the same: Python code, which may remember."""
    catalogue: Catalogue | None = None
    """Of an oracle: whose parameters it knows, in this order and scale."""

    def check_parameters(self, catalogue: Catalogue) -> None:
        """Refuse worlds whose parameters an oracle does not know."""
        known = self.catalogue or catalogue
        ours, theirs = (
            [(name, p.draws, p.limit) for name, p in found.parameters.items()]
            for found in (known, catalogue)
        )
        if ours != theirs:
            raise InputError(
                f"'{self.name}' is an oracle that knows the parameters of the groups "
                f"{', '.join(known.names)}; these worlds have {', '.join(catalogue.names)}"
                ", or other limit ranges"
            )


def load_policy(source: str, name: str = "") -> EvaluatedPolicy:
    """Load a policy by what it is called on the command line; see `ACCEPTED`."""
    name = name or source
    path = Path(source)
    if source == STAND:
        return EvaluatedPolicy(name, lambda device: Stand(), digest=STAND)
    if source in model_names() or path.is_dir():
        return _load_checkpoint(name, find_checkpoint(source))
    if path.suffix == ".onnx":
        return _load_onnx(name, path)
    module, colon, attribute = source.rpartition(":")
    if colon and module and attribute.isidentifier():
        policy = as_policy(find_code(source, "policy", ACCEPTED))
        return EvaluatedPolicy(name, lambda device: policy, is_shared=True)
    meant = guess(source, (*model_names(), STAND))
    raise InputError(f"no policy '{source}'{meant} Accepted: {ACCEPTED}")


def as_policy(subject: Any) -> Policy:
    """Wrap a function of observations [n, 45] in the interface of a policy.

    What has `act` and `reset` of its own is left as it is: see `horizon_rl.task.Policy`.
    """
    if isinstance(subject, type):
        subject = subject()
    if hasattr(subject, "act") and hasattr(subject, "reset"):
        return subject
    if callable(subject):
        return FunctionPolicy(subject)
    raise InputError(f"{subject!r} is no policy: it cannot be called")


class FunctionPolicy:
    """A function from observations [n, 45] to actions [n, 12], numpy float32."""

    def __init__(self, function: Callable[[np.ndarray], Any]):
        self._function = function

    def reset(self, mask: torch.Tensor) -> None:
        pass

    def act(self, observations: TensorDict) -> torch.Tensor:
        actor = observations["actor"]
        actions = self._function(actor.cpu().numpy())
        if not isinstance(actions, torch.Tensor):
            with blame("the policy's actions", TypeError, ValueError):
                # A copy: torch takes no array that runs backwards.
                actions = torch.from_numpy(np.array(actions, dtype=np.float32))
        return actions.to(actor.device, torch.float32)


class Stand:
    """The policy that holds the default pose: the floor of every table."""

    def reset(self, mask: torch.Tensor) -> None:
        pass

    def act(self, observations: TensorDict) -> torch.Tensor:
        actor = observations["actor"]
        return torch.zeros((len(actor), NUM_ACTIONS), device=actor.device)


def check_actions(actions: torch.Tensor, num_worlds: int) -> None:
    """Refuse what is not one action for each world, in numbers."""
    expected = (num_worlds, NUM_ACTIONS)
    if tuple(actions.shape) != expected:
        raise InputError(
            f"the policy's actions have shape {tuple(actions.shape)}; {num_worlds} "
            f"worlds need {expected}"
        )
    # On a GPU the answer would have to be waited for.
    if actions.device.type == "cpu" and not torch.isfinite(actions).all():
        raise InputError("the policy's actions are not all finite numbers (NaN, inf)")


def _load_checkpoint(name: str, path: Path) -> EvaluatedPolicy:
    actor, task, record = load_actor(path)
    scale, network = task.action_scale, record.config["learner"]["actor"]
    # The actor alone: a copy without critic or optimiser is the same policy.
    identity = hashlib.sha256(dumps([network, scale]).encode())
    for key, value in sorted(actor.state_dict().items()):
        identity.update(f"{key}{tuple(value.shape)}".encode())
        identity.update(value.numpy().tobytes())
    digest = identity.hexdigest()
    return EvaluatedPolicy(
        name,
        lambda device: LearnedPolicy(actor.to(device)),
        digest,
        scale,
        catalogue=decode(Catalogue, record.catalogue) if actor.is_oracle else None,
    )


def _load_onnx(name: str, path: Path) -> EvaluatedPolicy:
    with needs_extra("onnx"):
        from horizon_rl.policies.onnx import OnnxPolicy
        from horizon_rl.policies.onnx_file import MAX_BYTES
    with blame(f"cannot read {path}", OSError), open(path, "rb") as file:
        content = file.read(MAX_BYTES + 1)  # One too many is refused.
    with blame(str(path)):
        policy = OnnxPolicy(content, path.parent)
    whole = policy.content
    digest = hashlib.sha256(whole).hexdigest()
    return EvaluatedPolicy(
        name, lambda device: OnnxPolicy(whole), digest, policy.action_scale
    )
