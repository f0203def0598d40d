"""A run by HORIZON in memory: leaps, a held phase, a partial commit, a consolidation."""

from pathlib import Path

from horizon_rl.curriculum import Curriculum, Evidence, Horizon, LeapCfg
from horizon_rl.curriculum.scouting import BEYOND, WITHIN
from horizon_rl.runs.journal import create_curriculum
from run_files import CONTEXT

GROUPS = ("mass", "com")
LEAP = LeapCfg(
    recovery=0.75, ready=0.0, rungs=(0.5, 1.0), patience=2, min_gain=0.1, margin=0.15
)
HERE = dict.fromkeys((f"{WITHIN} {share:g}" for share in LeapCfg().keep), 0.3)


def shows(length: float, beyond=(0.6, 0.3), **survival: float) -> Evidence:
    """Return evidence of a phase; `beyond` is what the scouts survive outward."""
    names = (f"{BEYOND} 0.5", f"{BEYOND} 1")
    found = {**HERE, "candidate": length, **dict(zip(names, beyond, strict=True))}
    found |= {name.replace("_", " 0."): value for name, value in survival.items()}
    return Evidence(
        length=length,
        length_se=0.01,
        tracking_error=0.2,
        checkpoint_error=0.2,
        checkpoint_return=20.0,
        reference_error=0.2,
        reference_return=20.0,
        candidate_error=0.2,
        candidate_return=20.0,
        anchor_error=0.1,
        iterations=2,
        env_steps=100,
        probed={f"{name}_length": value for name, value in found.items()}
        | {f"{name}_error": 0.2 for name in found},
    )


def govern(*phases: Evidence) -> Curriculum:
    curriculum = Curriculum(GROUPS, Horizon(leap=LEAP))
    for evidence in phases:
        curriculum.tell(evidence)
    return curriculum


def write(run: Path, *phases: Evidence) -> Path:
    """Write the journal of such a run."""
    run.mkdir(parents=True)
    context = {**CONTEXT, "train": {**CONTEXT["train"], "method": "horizon"}}
    journal = run / "journal.jsonl"
    curriculum = create_curriculum(journal, GROUPS, Horizon(leap=LEAP), context)
    for evidence in phases:
        curriculum.tell(evidence)
    curriculum.close()
    return run


START = shows(0.95, beyond=(0.55, 0.15))
"""0.4 may be lost, and is at level 0.5: the first leap goes there."""
HELD = shows(0.7)
STALLED = shows(0.7, within_5=0.9)
"""No longer than before, but half way it passes."""
FAILED = shows(0.5)
STUCK = shows(0.9, beyond=(0.0, 0.0))
"""It passes, but nothing beyond is recoverable."""
