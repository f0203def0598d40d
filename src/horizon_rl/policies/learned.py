"""A learned actor as the policy that rollouts, gates and suites run."""

from contextlib import suppress
from functools import partial
from pathlib import Path

import torch
from tensordict import TensorDict
from torch import Tensor

from horizon_rl.domains import Catalogue
from horizon_rl.learning.algorithm import ALGORITHMS, check_tensors
from horizon_rl.learning.build import build_policy
from horizon_rl.learning.checkpoint import Checkpoint, CheckpointRecord, load_checkpoint
from horizon_rl.learning.config import LearnerCfg
from horizon_rl.learning.history import Memory
from horizon_rl.learning.networks import Actor
from horizon_rl.physics import privileged_numbers
from horizon_rl.runs.checkpoints import verify_checkpoint
from horizon_rl.support.errors import InputError, blame
from horizon_rl.support.records import decode
from horizon_rl.task import NUM_ACTIONS, NUM_ACTOR, TaskCfg
from horizon_rl.task.mirror import swap_instance


class LearnedPolicy:
    """Mean actions of an actor: see `horizon_rl.task.Policy`.

    It reads the actor's weights and normaliser as they are and changes nothing in it:
    the past is its own, so that a probe in mid-training leaves the rollout alone. Reset
    all worlds after the weights have changed.
    """

    def __init__(self, actor: Actor):
        self._actor = actor
        self._memory: Memory | None = None

    def reset(self, mask: Tensor) -> None:
        """Forget the past of the worlds in `mask` [n]."""
        if self._memory is not None and self._memory.num_worlds == len(mask):
            self._memory.reset(mask)
        else:
            self._memory = None

    @torch.no_grad()
    def act(self, observations: TensorDict) -> Tensor:
        """Return mean actions [n, -]."""
        if self._actor.is_oracle:
            _check_instances(self._actor, observations)
        means, self._memory = self._actor.mean_step(observations, self._memory)
        return means


def _check_instances(actor: Actor, observations: TensorDict) -> None:
    """Refuse observations that lack what an oracle knows."""
    expected = actor.num_inputs - actor.obs_dim
    groups = [g for g in actor.privileged_groups if g in observations.keys()]
    found = sum(observations[group].shape[-1] for group in groups)
    if found != expected:
        raise InputError(
            f"an oracle reads {expected} numbers about its instance, and {found} are "
            "given: it acts only in a simulator, in worlds with the parameters of the "
            "catalogue it was trained with"
        )


def _check_weights(weights: dict[str, Tensor], actor: Actor, algorithm: str) -> None:
    """Refuse the weights of another actor."""
    try:
        check_tensors(weights, actor.state_dict())
    except InputError as error:
        if algorithm in ALGORITHMS:
            raise
        raise InputError(
            f"{error}. Its algorithm '{algorithm}' is not registered: import the module "
            "that registers it first"
        ) from error


def read_checkpoint(path: Path) -> Checkpoint:
    """Verify and load a checkpoint: the one way to read it."""
    verify_checkpoint(path)
    return load_checkpoint(path)


def load_actor(
    path: Path, num_steps: int = 24
) -> tuple[Actor, TaskCfg, CheckpointRecord]:
    """Build a checkpoint's actor alone, on the CPU; return its task and record too.

    It has room for rollouts of `num_steps`, for those who let it act in one.

    Raises:
        InputError: It is damaged, or its actor is not for the task's observations.
    """
    tensors, record = read_checkpoint(path)
    # Keyed "actor.mlp.0.weight"; what belongs to the optimiser begins with "adam.".
    weights = {
        name.removeprefix("actor."): value
        for name, value in tensors.items()
        if name.startswith("actor.")
    }
    needed = f"{NUM_ACTOR} observations and {NUM_ACTIONS} actions"
    with blame(f"{path} is not a policy for {needed}"):
        cfg = decode(LearnerCfg, record.config.get("learner"))
        task = decode(TaskCfg, record.config.get("task"))
        widths, image = {"actor": NUM_ACTOR}, None
        if cfg.actor.privileged_groups:
            catalogue = decode(Catalogue, record.catalogue)
            widths["privileged"] = len(list(privileged_numbers(catalogue)))
            image = partial(swap_instance, catalogue)
        shapes = {group: torch.zeros(1, width) for group, width in widths.items()}
        build = partial(
            build_policy, TensorDict(shapes, [1]), NUM_ACTIONS, cfg, num_steps, image
        )
        # What the record asks for may fill the memory; an own actor may need its numbers.
        with suppress(RuntimeError), torch.device("meta"):
            _check_weights(weights, build(), cfg.algorithm)
        actor = build()
    actor.load_state_dict(weights)
    return actor.eval(), task, record
