"""The task: velocity tracking, and rollouts of policies on scenarios."""

from typing import TYPE_CHECKING

from horizon_rl.support.lazy import lazy_names

if TYPE_CHECKING:
    from horizon_rl.task.config import CommandCfg as CommandCfg
    from horizon_rl.task.config import NoiseCfg as NoiseCfg
    from horizon_rl.task.config import PushCfg as PushCfg
    from horizon_rl.task.config import RewardCfg as RewardCfg
    from horizon_rl.task.config import TaskCfg as TaskCfg
    from horizon_rl.task.env import NUM_ACTIONS as NUM_ACTIONS
    from horizon_rl.task.env import VelocityEnv as VelocityEnv
    from horizon_rl.task.episodes import FALL_CAUSES as FALL_CAUSES
    from horizon_rl.task.episodes import EpisodeTable as EpisodeTable
    from horizon_rl.task.episodes import SuccessCfg as SuccessCfg
    from horizon_rl.task.episodes import succeeded as succeeded
    from horizon_rl.task.observations import ACTOR_LAYOUT as ACTOR_LAYOUT
    from horizon_rl.task.observations import NUM_ACTOR as NUM_ACTOR
    from horizon_rl.task.rollouts import Policy as Policy
    from horizon_rl.task.rollouts import rollout as rollout
    from horizon_rl.task.scenarios import Scenarios as Scenarios
    from horizon_rl.task.scenarios import draw_scenarios as draw_scenarios
    from horizon_rl.task.scenarios import join_scenarios as join_scenarios

__getattr__, __dir__ = lazy_names(__name__)
