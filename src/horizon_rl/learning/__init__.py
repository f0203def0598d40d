"""Learning: transformer and MLP actors, a privileged critic, PPO, snapshots, export."""

from horizon_rl.learning.build import build_actor, build_learner
from horizon_rl.learning.config import (
    ActorCfg,
    CriticCfg,
    LearnerCfg,
    MlpCfg,
    PpoCfg,
    TransformerCfg,
)
from horizon_rl.learning.critic import PrivilegedCritic
from horizon_rl.learning.ppo import Learner, NonFiniteError
from horizon_rl.learning.snapshot import (
    Snapshot,
    load_state_tensors,
    restore,
    state_tensors,
    take_snapshot,
)
from horizon_rl.learning.transformer import TransformerActor

__all__ = [
    "ActorCfg",
    "CriticCfg",
    "Learner",
    "LearnerCfg",
    "MlpCfg",
    "NonFiniteError",
    "PpoCfg",
    "PrivilegedCritic",
    "Snapshot",
    "TransformerActor",
    "TransformerCfg",
    "build_actor",
    "build_learner",
    "load_state_tensors",
    "restore",
    "state_tensors",
    "take_snapshot",
]
