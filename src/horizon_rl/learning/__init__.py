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
from horizon_rl.learning.cost import cached_inference_ratio, inference_costs
from horizon_rl.learning.critic import PrivilegedCritic
from horizon_rl.learning.export import export_onnx
from horizon_rl.learning.policy import LearnedPolicy, load_actor
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
    "LearnedPolicy",
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
    "cached_inference_ratio",
    "export_onnx",
    "inference_costs",
    "load_actor",
    "load_state_tensors",
    "restore",
    "state_tensors",
    "take_snapshot",
]
