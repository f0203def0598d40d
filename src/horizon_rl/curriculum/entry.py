"""A judged phase as it goes on record."""

from collections.abc import Sequence
from dataclasses import dataclass

from horizon_rl.curriculum.evidence import Evidence
from horizon_rl.curriculum.frontier import Frontier
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
    """Return the checkpoint that the next phase starts from.

    What a phase on hold has saved counts until a rollback.
    """
    if entries and entries[-1].decision.action == "rollback":
        return last_commit(entries)
    return next((e.checkpoint for e in reversed(entries) if e.checkpoint), None)


def last_commit(entries: Sequence[Entry]) -> CheckpointRef | None:
    """Return the last checkpoint that is not one on hold: what a rollback restores."""
    kept = (e.checkpoint for e in reversed(entries) if e.decision.action != "hold")
    return next(filter(None, kept), None)


def is_on_hold(entries: Sequence[Entry]) -> bool:
    """Tell whether the last phase is trained on: a rollback would restore its start."""
    return bool(entries) and entries[-1].decision.action == "hold"


def lost_env_steps(entries: Sequence[Entry]) -> int:
    """Count the env steps of phases that were rolled back, or on hold before that."""
    lost = on_hold = 0
    for entry in entries:
        on_hold += entry.evidence.env_steps
        if entry.decision.action == "rollback":
            lost += on_hold
        if entry.decision.action != "hold":
            on_hold = 0
    return lost


def last_try(frontier: Frontier, entries: Sequence[Entry]) -> Entry | None:
    """Return the phase that last had a frontier on trial, alone or with others."""
    tries = (e for e in reversed(entries) if e.proposal.level_of(frontier) is not None)
    return next(tries, None)


def rollbacks_since(checkpoint: CheckpointRef | None, entries: Sequence[Entry]) -> int:
    """Count the rollbacks since a checkpoint was saved; None: since the start."""
    named = [i for i, e in enumerate(entries) if e.checkpoint == checkpoint]
    after = entries[named[-1] + 1 :] if checkpoint and named else entries
    return sum(entry.decision.action == "rollback" for entry in after)
