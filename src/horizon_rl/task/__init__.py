"""The task: velocity tracking on flat ground, and rollouts of policies on scenarios."""

from horizon_rl.task.config import CommandCfg, NoiseCfg, PushCfg, TaskCfg
from horizon_rl.task.env import NUM_ACTIONS, VelocityEnv
from horizon_rl.task.episodes import FALL_CAUSES, EpisodeTable, SuccessCfg, succeeded
from horizon_rl.task.observations import ACTOR_LAYOUT, NUM_ACTOR
from horizon_rl.task.rewards import REWARDS
from horizon_rl.task.rollout import Policy, rollout
from horizon_rl.task.scenarios import Scenarios, draw_scenarios, join_scenarios

__all__ = [
    "ACTOR_LAYOUT",
    "FALL_CAUSES",
    "NUM_ACTIONS",
    "NUM_ACTOR",
    "REWARDS",
    "CommandCfg",
    "EpisodeTable",
    "NoiseCfg",
    "Policy",
    "PushCfg",
    "Scenarios",
    "SuccessCfg",
    "TaskCfg",
    "VelocityEnv",
    "draw_scenarios",
    "join_scenarios",
    "rollout",
    "succeeded",
]
