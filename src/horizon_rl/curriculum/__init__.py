"""The curriculum core: pure decisions on frontiers. Needs numpy and nothing else."""

from horizon_rl.curriculum.config import (
    METHODS,
    Clock,
    CurriculumCfg,
    GateCfg,
    Method,
    apply_method,
)
from horizon_rl.curriculum.early import EarlyCfg, look, spent_error
from horizon_rl.curriculum.evidence import Episodes, Evidence, measure, select_window
from horizon_rl.curriculum.frontier import Frontier
from horizon_rl.curriculum.gates import Verdict, judge
from horizon_rl.curriculum.journal import (
    Checkpoint,
    Entry,
    Header,
    Journal,
    Replay,
    committed_folder,
    is_locked,
    last_checkpoint,
    read_header,
    replay,
)
from horizon_rl.curriculum.layout import (
    BUDGET,
    CHECKPOINTS,
    EVIDENCE,
    INITIAL,
    JOURNAL,
    METRICS,
    TIMES,
    phase_name,
)
from horizon_rl.curriculum.manager import Curriculum
from horizon_rl.curriculum.randomness import phase_rng
from horizon_rl.curriculum.schema import JournalError, dump_state, load_state
from horizon_rl.curriculum.state import Decision, Event, Proposal, State
from horizon_rl.curriculum.step import start, step

__all__ = [
    "BUDGET",
    "CHECKPOINTS",
    "EVIDENCE",
    "INITIAL",
    "JOURNAL",
    "METHODS",
    "METRICS",
    "TIMES",
    "Checkpoint",
    "Clock",
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
    "Header",
    "Journal",
    "JournalError",
    "Method",
    "Proposal",
    "Replay",
    "State",
    "Verdict",
    "apply_method",
    "committed_folder",
    "dump_state",
    "is_locked",
    "judge",
    "last_checkpoint",
    "load_state",
    "look",
    "measure",
    "phase_name",
    "phase_rng",
    "read_header",
    "replay",
    "select_window",
    "spent_error",
    "start",
    "step",
]
