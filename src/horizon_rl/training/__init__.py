"""Training: phases on the real simulator, governed by the curriculum."""

from horizon_rl.runs.files import (
    Context,
    PhaseTimes,
    read_context,
)
from horizon_rl.training.config import TrainCfg
from horizon_rl.training.presets import PolicyKind, Preset, preset_cfg
from horizon_rl.training.run import Run
from horizon_rl.training.trainer import Iteration, Trainer

__all__ = [
    "Context",
    "Iteration",
    "PhaseTimes",
    "PolicyKind",
    "Preset",
    "Run",
    "TrainCfg",
    "Trainer",
    "preset_cfg",
    "read_context",
]
