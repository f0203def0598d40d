"""Training: runs at fixed ranges, cut into segments that can be resumed exactly."""

from horizon_rl.training.config import PolicyKind, Preset, TrainCfg, preset_cfg
from horizon_rl.training.run import Run, list_checkpoints, newest_checkpoint
from horizon_rl.training.trainer import Iteration, Trainer, success_rate

__all__ = [
    "Iteration",
    "PolicyKind",
    "Preset",
    "Run",
    "TrainCfg",
    "Trainer",
    "list_checkpoints",
    "newest_checkpoint",
    "preset_cfg",
    "success_rate",
]
