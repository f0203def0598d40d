"""The curriculum as an object with two methods, for any training loop."""

from collections.abc import Callable, Sequence
from typing import Protocol

from horizon_rl.curriculum.config import CurriculumCfg
from horizon_rl.curriculum.entry import CheckpointRef, Entry, last_checkpoint
from horizon_rl.curriculum.evidence import Evidence
from horizon_rl.curriculum.state import Decision, Proposal, State
from horizon_rl.curriculum.step import start, step
from horizon_rl.support.errors import InputError

FLAWLESS = Evidence(
    length=1.0,
    tracking_error=0.0,
    checkpoint_error=0.0,
    checkpoint_return=0.0,
    reference_error=0.0,
    reference_return=0.0,
)
HOPELESS = Evidence(length=None, tracking_error=None, aborted=True)

Save = Callable[[Decision], CheckpointRef]


class Log(Protocol):
    """Where judged phases are kept."""

    def append(self, entry: Entry) -> None:
        """Return once the entry is safe."""
        ...

    def close(self) -> None: ...


class Curriculum:
    """Asks for phases and is told what they showed.

        curriculum = Curriculum(["mass", "com"])
        while proposal := curriculum.ask():
            evidence = train(proposal.levels)
            decision = curriculum.tell(evidence)

    With a log every decision is on record before `tell` returns: see `runs.journal`.
    """

    def __init__(
        self,
        groups: Sequence[str],
        cfg: CurriculumCfg | None = None,
        log: Log | None = None,
    ):
        """Start in memory; `runs.create_curriculum` starts one that is kept on disk."""
        self.cfg = cfg or CurriculumCfg()
        self.state: State = start(groups, self.cfg)
        self.entries: list[Entry] = []
        self._log = log

    @property
    def checkpoint(self) -> CheckpointRef | None:
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
        if self._log:
            self._log.append(entry)
        self.state = state
        self.entries.append(entry)
        return decision

    def close(self) -> None:
        """Close the journal; the run can be resumed from it."""
        if self._log:
            self._log.close()
