"""Which checkpoints of a run stand for it: at its end, or at marks on the way."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from horizon_rl.curriculum import last_checkpoint
from horizon_rl.runs.journal import Replay
from horizon_rl.runs.paths import checkpoint_folder

LATE, REACHED = 1.05, 0.9
"""A phase ends where it ends: a checkpoint a twentieth beyond a mark stands for it; a run
that ended before nine tenths of a mark has none there."""


@dataclass(frozen=True)
class CheckpointAt:
    """A checkpoint, and what it had cost."""

    checkpoint: str
    env_steps: int
    mark: float | None = None
    """The env steps that were asked for; None: the run's end."""


def evaluated_at(run: Replay, marks: Sequence[float]) -> tuple[CheckpointAt, ...]:
    """Return the checkpoints that a run would have gone on from at marks it has passed.

    Without marks, that which it would go on from now.
    """
    entries = run.entries
    costs = [entry.evidence.env_steps for entry in entries]
    # What teachers had spent before it began counts.
    before = run.state.env_steps - sum(costs)
    totals = [before + cost for cost in accumulate(costs)]
    if not marks:
        named = last_checkpoint(entries)
        name = named.name if named else checkpoint_folder(Path()).name
        return (CheckpointAt(name, totals[-1] if totals else before),)
    found = []
    for mark in marks:
        passed = sum(total <= LATE * mark for total in totals)
        # After a rollback it is the last commit's, not what a held phase has saved.
        named = last_checkpoint(entries[:passed])
        if totals and totals[-1] >= REACHED * mark and named:
            found.append(CheckpointAt(named.name, totals[passed - 1], mark))
    return tuple(found)
