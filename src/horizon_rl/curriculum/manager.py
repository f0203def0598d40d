"""The curriculum as an object with two methods, for any training loop."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from horizon_rl.curriculum.config import CurriculumCfg
from horizon_rl.curriculum.evidence import Evidence
from horizon_rl.curriculum.journal import (
    Checkpoint,
    Entry,
    Journal,
    last_checkpoint,
)
from horizon_rl.curriculum.state import Decision, Proposal, State
from horizon_rl.curriculum.step import start, step
from horizon_rl.errors import InputError

FLAWLESS = Evidence(
    length=1.0,
    tracking_error=0.0,
    checkpoint_error=0.0,
    checkpoint_return=0.0,
    reference_error=0.0,
    reference_return=0.0,
)
HOPELESS = Evidence(length=None, tracking_error=None, aborted=True)

Save = Callable[[Decision], Checkpoint]


class Curriculum:
    """Asks for phases and is told what they showed.

        curriculum = Curriculum(["mass", "com"])
        while proposal := curriculum.ask():
            evidence = train(proposal.levels)
            decision = curriculum.tell(evidence)

    With a journal every decision is on disk before `tell` returns, and `resume` goes
    on after the last one.
    """

    def __init__(self, groups: Sequence[str], cfg: CurriculumCfg | None = None):
        """Start in memory; `create` starts a run that is kept on disk."""
        self.cfg = cfg or CurriculumCfg()
        self.state: State = start(groups, self.cfg)
        self.entries: list[Entry] = []
        self._journal: Journal | None = None

    @classmethod
    def create(
        cls,
        path: Path,
        groups: Sequence[str],
        cfg: CurriculumCfg | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> "Curriculum":
        """Start a run whose journal is written at `path`.

        `context` goes into the journal's header: what else a resumed run must know.
        """
        curriculum = cls(groups, cfg)
        curriculum._journal = Journal.create(
            path, groups, curriculum.cfg, context or {}
        )
        return curriculum

    @classmethod
    def resume(cls, path: Path) -> "Curriculum":
        """Go on with the run whose journal lies at `path`."""
        journal, so_far = Journal.resume(path)
        curriculum = cls(so_far.header.groups, so_far.header.curriculum)
        curriculum._journal = journal
        curriculum.state = so_far.state
        curriculum.entries = list(so_far.entries)
        return curriculum

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The last checkpoint on record: what a rollback restores."""
        return last_checkpoint(self.entries)

    def ask(self) -> Proposal | None:
        """Return the phase to train next, or None when the run has ended."""
        return self.state.proposal

    def outlook(self) -> tuple[Proposal, ...]:
        """Return what may follow the phase on trial: after a pass, after a failure."""
        if self.state.proposal is None:
            return ()
        states = (step(self.state, e, self.cfg)[0] for e in (FLAWLESS, HOPELESS))
        return tuple(state.proposal for state in states if state.proposal)

    def tell(self, evidence: Evidence, save: Save | None = None) -> Decision:
        """Judge the phase last asked for, put the decision on record, and return it.

        Args:
            evidence: What the phase showed.
            save: Writes a finished checkpoint and returns its name and digest; called
                if the weights are kept, before the line that names it is written. If
                it raises, nothing has happened: the phase is still on trial.
        """
        proposal = self.ask()
        if proposal is None:
            raise InputError(f"the run has ended: {self.state.ended}")
        state, decision = step(self.state, evidence, self.cfg)
        checkpoint = save(decision) if save and decision.keeps_weights else None
        entry = Entry(
            proposal=proposal,
            evidence=evidence,
            decision=decision,
            checkpoint=checkpoint,
        )
        if self._journal:
            self._journal.append(entry)
        self.state = state
        self.entries.append(entry)
        return decision

    def close(self) -> None:
        """Close the journal; the run can be resumed from it."""
        if self._journal:
            self._journal.close()
