"""The curriculum core: pure decisions on frontiers. Needs numpy and nothing else."""

from horizon_rl.curriculum.config import (
    METHODS,
    ClockCfg,
    CurriculumCfg,
    GateCfg,
    Method,
    apply_method,
)
from horizon_rl.curriculum.curriculum import Curriculum
from horizon_rl.curriculum.early_stopping import EarlyCfg, look, spent_error
from horizon_rl.curriculum.entry import CheckpointRef, Entry, last_checkpoint
from horizon_rl.curriculum.evidence import Episodes, Evidence, measure, select_window
from horizon_rl.curriculum.frontier import Frontier
from horizon_rl.curriculum.gates import Verdict, judge
from horizon_rl.curriculum.randomness import phase_rng
from horizon_rl.curriculum.state import Decision, Event, Proposal, State
from horizon_rl.curriculum.step import start, step

__all__ = [
    "METHODS",
    "CheckpointRef",
    "ClockCfg",
    "Curriculum",
    "CurriculumCfg",
    "Decision",
    "EarlyCfg",
    "Entry",
    "Episodes",
    "Event",
    "Evidence",
    "Frontier",
    "GateCfg",
    "Method",
    "Proposal",
    "State",
    "Verdict",
    "apply_method",
    "judge",
    "last_checkpoint",
    "look",
    "measure",
    "phase_rng",
    "select_window",
    "spent_error",
    "start",
    "step",
]
