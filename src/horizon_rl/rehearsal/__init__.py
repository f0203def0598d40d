"""The whole curriculum against a synthetic learner: seconds instead of GPU hours."""

from horizon_rl.rehearsal.compare import Row, compare
from horizon_rl.rehearsal.learner import LearnerCfg, Policy
from horizon_rl.rehearsal.run import (
    JOURNAL,
    Rehearsal,
    RehearsalCfg,
    read_context,
    run_to_end,
)
from horizon_rl.rehearsal.summary import count, coverage_of, summarise

__all__ = [
    "JOURNAL",
    "LearnerCfg",
    "Policy",
    "Rehearsal",
    "RehearsalCfg",
    "Row",
    "compare",
    "count",
    "coverage_of",
    "read_context",
    "run_to_end",
    "summarise",
]
