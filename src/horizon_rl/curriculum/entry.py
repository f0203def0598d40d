"""A judged phase as it goes on record."""

from collections.abc import Sequence
from dataclasses import dataclass

from horizon_rl.curriculum.evidence import Evidence
from horizon_rl.curriculum.state import Decision, Proposal


@dataclass(frozen=True)
class CheckpointRef:
    """A finished checkpoint: its directory's name and content digest."""

    name: str
    digest: str


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One judged phase."""

    proposal: Proposal
    evidence: Evidence
    decision: Decision
    checkpoint: CheckpointRef | None = None
    """None after a rollback, or where the run keeps no checkpoints."""


def last_checkpoint(entries: Sequence[Entry]) -> CheckpointRef | None:
    """Return the last checkpoint on record: where the next phase starts from."""
    return next((e.checkpoint for e in reversed(entries) if e.checkpoint), None)
