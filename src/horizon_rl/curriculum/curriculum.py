"""The curriculum as an object with two methods, for any training loop."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from horizon_rl.curriculum.config import CurriculumCfg
from horizon_rl.curriculum.early_stopping import Look
from horizon_rl.curriculum.entry import CheckpointRef, Entry, last_checkpoint
from horizon_rl.curriculum.evidence import Episodes, Evidence
from horizon_rl.curriculum.method import Method, check_is_method, with_reference
from horizon_rl.curriculum.methods import Horizon
from horizon_rl.curriculum.state import Decision, Proposal, State
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


class Log(Protocol):
    """Where judged phases are kept: a journal on disk, say."""

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

    A loop that keeps checkpoints goes one step further: `decide`, save, then `tell` with
    the checkpoint's name. With a log, a decision is on record when `tell` returns.
    """

    def __init__(
        self,
        groups: Sequence[str],
        method: Method | None = None,
        *,
        entries: Sequence[Entry] = (),
        state: State | None = None,
        log: Log | None = None,
    ):
        """Start in memory; `runs.create_curriculum` starts one that is kept on disk.

        Args:
            groups: Domain groups to widen.
            method: How; without it, HORIZON.
            entries: Phases that were judged before, to go on after.
            state: The state after them, if it is known.
            log: Where phases judged from now on are kept.
        """
        self.method: Method = Horizon() if method is None else method
        check_is_method(self.method)
        self.entries: list[Entry] = list(entries)
        if state is None:
            state = self.method.start(groups)
            for entry in entries:
                state, _ = self.method.step(state, entry.evidence)
        self.state: State = state
        self._log = log

    @property
    def cfg(self) -> CurriculumCfg:
        return self.method.cfg

    @property
    def checkpoint(self) -> CheckpointRef | None:
        """The checkpoint that the next phase starts from."""
        return last_checkpoint(self.entries)

    def ask(self) -> Proposal | None:
        """Return the phase to train next, or None when the run has ended."""
        return self.state.proposal

    def outlook(self) -> tuple[Proposal, ...]:
        """Return what may follow the phase on trial: after a pass, after a failure.

        For a method that learns from single episodes nobody can say.
        """
        if self.state.proposal is None or self.method.outcome_parameters is not None:
            return ()
        states = (self.method.step(self.state, e)[0] for e in (FLAWLESS, HOPELESS))
        return tuple(state.proposal for state in states if state.proposal)

    def looks(self) -> tuple[float, ...]:
        """Return when to look at the phase on trial; see `Method.looks`."""
        return self.method.looks(self.state)

    def look(self, window: Episodes, index: int, longest: int) -> Look:
        """Look at the phase on trial before its end; see `Method.look`."""
        return self.method.look(self.state, window, index, longest)

    def preview(self, evidence: Evidence) -> tuple[State, Decision]:
        """Return what `tell` would decide and the state after it; change nothing."""
        _, state, decision = self._judge(evidence)
        return state, decision

    def decide(self, evidence: Evidence) -> Decision:
        """Return what `tell` would decide; change nothing."""
        return self.preview(evidence)[1]

    def forget_reference(self) -> None:
        """Have the last commit measured again before the next phase trains."""
        if known := self.state.reference:
            self.state = replace(self.state, reference=known.unmeasured())

    def tell(
        self, evidence: Evidence, checkpoint: CheckpointRef | None = None
    ) -> Decision:
        """Judge the phase last asked for, put the decision on record, and return it.

        Args:
            evidence: What the phase showed.
            checkpoint: The finished checkpoint, where weights are kept and saved.
        """
        evidence, state, decision = self._judge(evidence)
        proposal = self.state.proposal
        assert proposal is not None
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
        """Close the log; the run can be resumed from it."""
        if self._log:
            self._log.close()

    def _judge(self, evidence: Evidence) -> tuple[Evidence, State, Decision]:
        if self.state.proposal is None:
            raise InputError(f"the run has ended: {self.state.ended}")
        evidence = with_reference(evidence, self.state.reference)
        return evidence, *self.method.step(self.state, evidence)
