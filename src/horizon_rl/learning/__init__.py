"""Learning: transformer and MLP actors, a privileged critic, PPO, snapshots."""

from typing import TYPE_CHECKING

from horizon_rl.support.lazy import lazy_names

if TYPE_CHECKING:
    from horizon_rl.learning.algorithm import Adversarial as Adversarial
    from horizon_rl.learning.algorithm import Algorithm as Algorithm
    from horizon_rl.learning.algorithm import Scoring as Scoring
    from horizon_rl.learning.algorithm import load_state_tensors as load_state_tensors
    from horizon_rl.learning.algorithm import register_algorithm as register_algorithm
    from horizon_rl.learning.algorithm import restore as restore
    from horizon_rl.learning.algorithm import state_tensors as state_tensors
    from horizon_rl.learning.algorithm import take_snapshot as take_snapshot
    from horizon_rl.learning.build import build_actor as build_actor
    from horizon_rl.learning.build import build_learner as build_learner
    from horizon_rl.learning.build import build_policy as build_policy
    from horizon_rl.learning.build import build_ppo as build_ppo
    from horizon_rl.learning.config import ActorCfg as ActorCfg
    from horizon_rl.learning.config import CriticCfg as CriticCfg
    from horizon_rl.learning.config import DistillCfg as DistillCfg
    from horizon_rl.learning.config import GramCfg as GramCfg
    from horizon_rl.learning.config import LearnerCfg as LearnerCfg
    from horizon_rl.learning.config import MlpCfg as MlpCfg
    from horizon_rl.learning.config import PpoCfg as PpoCfg
    from horizon_rl.learning.config import TransformerCfg as TransformerCfg
    from horizon_rl.learning.distill import Distillation as Distillation
    from horizon_rl.learning.gram import Gram as Gram
    from horizon_rl.learning.gram_networks import GramActor as GramActor
    from horizon_rl.learning.networks import Actor as Actor
    from horizon_rl.learning.ppo import Ppo as Ppo
    from horizon_rl.learning.transformer import TransformerActor as TransformerActor

__getattr__, __dir__ = lazy_names(__name__)
