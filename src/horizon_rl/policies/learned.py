"""A learned actor as the policy that rollouts, gates and suites run."""

import torch
from rsl_rl.models import MLPModel
from tensordict import TensorDict
from torch import Tensor

from horizon_rl.learning.build import build_actor
from horizon_rl.learning.checkpoint import Checkpoint
from horizon_rl.learning.config import LearnerCfg
from horizon_rl.learning.history import Cache
from horizon_rl.learning.snapshot import describe
from horizon_rl.learning.transformer import TransformerActor
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import decode


class LearnedPolicy:
    """Mean actions of an actor: see `horizon_rl.task.Policy`.

    It reads the actor's weights and normaliser as they are and changes nothing in it:
    the past is its own, so that a probe in mid-training leaves the rollout alone. Reset
    all worlds after the weights have changed.
    """

    def __init__(self, actor: MLPModel):
        self._actor = actor
        self._cache: Cache | None = None

    def reset(self, mask: Tensor) -> None:
        """Forget the past of the worlds in `mask` [n]."""
        if self._cache is not None and self._cache.num_worlds == len(mask):
            self._cache.reset(mask)
        else:
            self._cache = None

    @torch.no_grad()
    def act(self, observations: TensorDict) -> Tensor:
        """Return mean actions [n, -]."""
        actor = self._actor
        if not isinstance(actor, TransformerActor):
            return actor(observations)
        raw = torch.cat([observations[group] for group in actor.obs_groups], dim=-1)
        if self._cache is None or self._cache.is_full:
            # Rebuilding once per window costs about one more embedding per step.
            self._cache = actor.renew(self._cache, len(raw), actor.cfg.window)
        return actor.mlp(actor.step(raw, self._cache))


def load_actor(checkpoint: Checkpoint, num_inputs: int, num_actions: int) -> MLPModel:
    """Build a checkpoint's actor alone, on the CPU.

    Raises:
        InputError: It takes other inputs or gives other outputs than asked for.
    """
    # Keyed "actor.mlp.0.weight"; what belongs to the optimiser begins with "adam.".
    weights = {
        name.removeprefix("actor."): value
        for name, value in checkpoint.tensors.items()
        if name.startswith("actor.")
    }
    cfg = decode(LearnerCfg, checkpoint.record.config.get("learner"))
    shape = TensorDict({"actor": torch.zeros(1, num_inputs)}, [1])
    actor = build_actor(shape, num_actions, cfg.actor)
    own = actor.state_dict()
    if own.keys() != weights.keys():
        strange = min(own.keys() ^ weights.keys())
        raise InputError(f"its weights do not fit its settings: 'actor.{strange}'")
    for name, value in own.items():
        found, expected = describe(weights[name]), describe(value)
        if found != expected:
            raise InputError(
                f"it does not fit {num_inputs} observations and {num_actions} actions: "
                f"'actor.{name}' is {found}; expected: {expected}"
            )
    actor.load_state_dict(weights)
    return actor.eval()
