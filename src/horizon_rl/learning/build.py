"""From settings and the shapes of observations to something that learns."""

from typing import overload

import torch
from rsl_rl.models import MLPModel
from tensordict import TensorDict

from horizon_rl.learning.config import (
    ActorCfg,
    LearnerCfg,
    MlpCfg,
    TransformerCfg,
    action_noise,
)
from horizon_rl.learning.critic import PrivilegedCritic
from horizon_rl.learning.ppo import Learner
from horizon_rl.learning.storage import SequenceStorage
from horizon_rl.learning.transformer import TransformerActor
from horizon_rl.support.errors import InputError
from horizon_rl.support.ranks import ALONE, Ranks

OBS_GROUPS = {"actor": ["actor"], "critic": ["critic"]}
"""What is normalised empirically; the critic takes `privileged` beside it."""


def build_learner(
    observations: TensorDict,
    num_actions: int,
    num_envs: int,
    cfg: LearnerCfg,
    device: str | torch.device = "cpu",
    ranks: Ranks = ALONE,
) -> Learner:
    """Build actor, critic, storage and algorithm; torch's seed sets the weights.

    Args:
        observations: Groups `actor`, `critic` and `privileged`, for their shapes.
        num_actions: Width of an action.
        num_envs: Worlds that will be collected from, by this rank.
        cfg: What to build.
        device: Where it lives.
        ranks: Who else learns, each from its own worlds.
    """
    ppo, device = cfg.ppo, str(device)
    missing = {"actor", "critic", "privileged"} - set(observations.keys())
    if missing:
        raise InputError(f"observations lack the group '{min(missing)}'")
    if num_envs < ppo.num_minibatches:
        raise InputError(
            f"{num_envs} environments cannot be cut into {ppo.num_minibatches}"
            " minibatches: use more of these or fewer of those"
        )
    actor = build_actor(observations, num_actions, cfg.actor, ppo.num_steps)
    critic = PrivilegedCritic(observations, OBS_GROUPS, "critic", 1, cfg.critic)
    storage = SequenceStorage(
        "rl", num_envs, ppo.num_steps, observations, [num_actions], device
    )
    return Learner(actor, critic, storage, ppo, device, ranks)


@overload
def build_actor(
    observations: TensorDict, num_actions: int, cfg: TransformerCfg, num_steps: int = 24
) -> TransformerActor: ...
@overload
def build_actor(
    observations: TensorDict, num_actions: int, cfg: ActorCfg, num_steps: int = 24
) -> MLPModel: ...
def build_actor(
    observations: TensorDict, num_actions: int, cfg: ActorCfg, num_steps: int = 24
) -> MLPModel:
    """Build an actor alone, on the CPU: enough to run a policy."""
    if isinstance(cfg, MlpCfg):
        return MLPModel(
            observations,
            OBS_GROUPS,
            "actor",
            num_actions,
            cfg.hidden_dims,
            cfg.activation,
            obs_normalization=True,
            distribution_cfg=action_noise(cfg),
        )
    return TransformerActor(
        observations, OBS_GROUPS, "actor", num_actions, cfg, num_steps
    )
