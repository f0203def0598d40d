"""A run: phases on the real simulator, governed by the curriculum, kept on disk.

Of several ranks, rank 0 alone holds the curriculum, reads and writes.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from horizon_rl.curriculum import CheckpointRef, Curriculum, Decision, Entry, Proposal
from horizon_rl.domains import Catalogue
from horizon_rl.learning import (
    load_state_tensors,
    restore,
    state_tensors,
    take_snapshot,
)
from horizon_rl.learning.checkpoint import (
    CheckpointRecord,
    load_checkpoint,
    save_checkpoint,
)
from horizon_rl.runs.files import (
    Context,
    PhaseTimes,
    checked_folder,
    keep_lines,
    only_finite,
    read_context,
    remove_unfinished,
    write_budget,
    write_evidence,
)
from horizon_rl.runs.journal import create_curriculum, resume_curriculum
from horizon_rl.runs.paths import (
    CHECKPOINTS,
    INITIAL,
    JOURNAL,
    METRICS,
    TIMES,
    phase_name,
)
from horizon_rl.support.durable import make_run_directory, read_lines, remove_unnamed
from horizon_rl.support.errors import InputError
from horizon_rl.support.ranks import ALONE, Ranks
from horizon_rl.support.records import decode, dumps, encode
from horizon_rl.training.config import TrainCfg, widened_groups
from horizon_rl.training.phase import Phase
from horizon_rl.training.probe import Prober, Reference
from horizon_rl.training.trainer import Iteration, Trainer
from horizon_rl.training.transfer import fit_catalogue

SCRATCH = "from scratch"


class Run:
    """A trainer, the curriculum that governs it, and the directory of both."""

    def __init__(self, trainer: Trainer, path: Path, device: str):
        self.trainer, self.path, self.ranks = trainer, path, trainer.ranks
        self.trained_s = 0.0
        """Seconds of finished phases, earlier sittings included."""
        self._sat_down = time.perf_counter()
        self.stopped = False
        """Whether it ended because it was asked to."""
        self.start = SCRATCH
        """What it started from, in words."""
        self._curriculum: Curriculum | None = None
        self._initial = CheckpointRef(INITIAL, "")
        self._prober = self._make_prober(device) if self.ranks.leads else None

    @classmethod
    def create(
        cls,
        cfg: TrainCfg,
        catalogue: Catalogue,
        path: Path,
        device: str = "auto",
        ranks: Ranks = ALONE,
        init: Path | None = None,
        name: str = "",
    ) -> "Run":
        """Start a run, perhaps from the weights of the checkpoint `init`, called `name`.

        A directory that holds one already is refused.
        """
        groups = widened_groups(cfg, catalogue)
        trainer = Trainer(cfg, catalogue, device=device, ranks=ranks)
        run = cls(trainer, path, device)
        if init:
            run.start = f"from {name or init}"
        ranks.once(lambda: run._make_directory(groups, init))
        return run

    @classmethod
    def resume(
        cls,
        path: Path,
        *,
        steps: int | None = None,
        minutes: float | None = None,
        device: str = "auto",
        ranks: Ranks = ALONE,
    ) -> "Run":
        """Go on after the last judged phase, perhaps with a new budget.

        The device may be another: it is not part of what a run is. Only on the same CPU
        does the run go on as if it had not been interrupted, to the bit. The number of
        ranks must be the same: it says how many worlds there are.
        """
        context = ranks.once(lambda: read_context(path))
        if context.ranks != ranks.size:
            raise InputError(
                f"{path} is a run of {context.ranks} rank(s), not {ranks.size}: resume "
                f"it with torchrun --nproc-per-node {context.ranks} -m horizon_rl, or start another from its "
                "checkpoint with --init"
            )
        was = context.train
        cfg = replace(
            was,
            steps=was.steps if steps is None else steps,
            minutes=was.minutes if minutes is None else minutes,
        )
        trainer = Trainer(cfg, context.catalogue, device=device, ranks=ranks)
        run = cls(trainer, path, device)
        ranks.once(lambda: run._catch_up(context))
        if cfg != was:
            ranks.once(lambda: write_budget(path, cfg))
        return run

    @property
    def curriculum(self) -> Curriculum:
        """What governs the run; rank 0 alone has it."""
        assert self._curriculum is not None
        return self._curriculum

    @property
    def checkpoint(self) -> Path:
        """The checkpoint that the run would go on from."""
        named = self.curriculum.checkpoint or self._initial
        return self.path / CHECKPOINTS / named.name

    @property
    def spent_s(self) -> float:
        """Seconds of the run so far, the phase under way included."""
        return self.trained_s + time.perf_counter() - self._sat_down

    @property
    def ended(self) -> str | None:
        """Why the run is at its end, in words; None while it goes on."""
        cfg, state = self.trainer.cfg, self.curriculum.state
        if state.ended:
            return state.ended
        if 0 < cfg.steps <= state.env_steps:
            return f"budget of {cfg.steps} env steps spent"
        if 0.0 < cfg.minutes * 60.0 <= self.trained_s:
            return f"budget of {cfg.minutes:g} minutes spent"
        return None

    def events(
        self, stop_asked: Callable[[], bool] = lambda: False
    ) -> Iterator[Iteration | Entry]:
        """Train phase after phase; yields every iteration, and every judged phase.

        Where `stop_asked` says so after an iteration, the run stops there. The phase
        was not judged: it runs again when the run is resumed.
        """
        self._follow_rank_0()
        log = self.path / METRICS if self.ranks.leads else os.devnull
        with open(log, "a") as metrics:
            while ahead := self.ranks.once(self._ask):
                before = take_snapshot(self.trainer.learner)
                phase = Phase(
                    self.trainer, self._prober, ahead.proposal, ahead.reference
                )
                began = self._sat_down = time.perf_counter()
                for following in ahead.outlook:
                    self.trainer.draw_ahead(following.phase, following.levels)
                for iteration in phase.train():
                    line = {"phase": ahead.proposal.phase, **asdict(iteration)}
                    metrics.write(dumps(only_finite(line)) + "\n")
                    metrics.flush()
                    yield iteration
                    self.stopped = self.ranks.once(stop_asked)
                    if self.stopped:
                        return
                trained = time.perf_counter()
                self._check_ranks()
                entry = self.ranks.once(partial(self._judge, phase))
                if not entry.decision.keeps_weights:
                    restore(self.trainer.learner, before)
                    self.trainer.learner.learning_rate *= self.trainer.cfg.rollback_rate
                times = PhaseTimes(
                    phase=ahead.proposal.phase,
                    train_s=trained - began - phase.probe_s,
                    probe_s=phase.probe_s,
                    settle_s=time.perf_counter() - trained,
                )
                self.ranks.once(partial(self._note_times, times))
                yield entry

    def close(self) -> None:
        """Let another process go on with the run."""
        if self._curriculum:
            self._curriculum.close()

    def _ask(self) -> "Ahead | None":
        """Return the next phase and what it needs to know, or None at the end."""
        proposal = self.curriculum.ask()
        if proposal is None or self.ended:
            return None
        reference = find_reference(self.curriculum.entries)
        return Ahead(proposal, reference, self.curriculum.outlook())

    def _judge(self, phase: Phase) -> Entry:
        """Put the phase's evidence, its checkpoint and its verdict on disk, in order."""
        weighed = phase.weighed
        assert weighed is not None
        write_evidence(self.path, phase.proposal.phase, weighed.window, weighed.probes)
        save = partial(self._save, weighed.evidence.env_steps)
        self.curriculum.tell(weighed.evidence, save)
        return self.curriculum.entries[-1]

    def _save(self, phase_steps: int, decision: Decision) -> CheckpointRef:
        proposal, state = self.curriculum.ask(), self.curriculum.state
        assert proposal is not None
        return self._write_checkpoint(
            phase_name(decision.phase),
            levels=proposal.levels,
            counters={
                "phase": state.phase + 1,
                "env_steps": state.env_steps + phase_steps,
            },
        )

    def _write_checkpoint(
        self, name: str, levels: dict[str, float], counters: dict[str, int]
    ) -> CheckpointRef:
        trainer = self.trainer
        record = CheckpointRecord(
            numbers={"learning_rate": trainer.learner.learning_rate},
            counters={
                "iteration": trainer.iteration,
                "ranks": self.ranks.size,
                **counters,
            },
            seed=trainer.cfg.seed,
            # Without its budget, which a resumed run may change: what was learnt does
            # not hang on it.
            config=encode(replace(trainer.cfg, steps=0, minutes=0.0)),
            catalogue=encode(trainer.catalogue),
            levels={**trainer.fixed, **levels},
        )
        folder = self.path / CHECKPOINTS / name
        return CheckpointRef(
            name, save_checkpoint(folder, state_tensors(trainer.learner), record)
        )

    def _note_times(self, times: PhaseTimes) -> None:
        self.trained_s += times.total_s
        self._sat_down = time.perf_counter()
        with open(self.path / TIMES, "a") as file:
            file.write(dumps(asdict(times)) + "\n")

    def _make_prober(self, device: str) -> Prober | None:
        cfg = self.trainer.cfg
        has_sets = cfg.probe_scenarios or cfg.anchor_scenarios
        return Prober(self.trainer, device) if has_sets else None

    def _make_directory(self, groups: tuple[str, ...], init: Path | None) -> None:
        trainer = self.trainer
        if init:
            # It may not fit: then nothing has been written.
            self._load(init, refit=True)
        make_run_directory(self.path, JOURNAL, CHECKPOINTS)
        self._initial = self._write_checkpoint(
            INITIAL, {}, {"phase": 0, "env_steps": 0}
        )
        context = Context(
            train=trainer.cfg,
            catalogue=trainer.catalogue,
            ranks=self.ranks.size,
            initial=self._initial.digest,
            start=self.start,
        )
        # Last: no run exists that lacks its start.
        self._curriculum = create_curriculum(
            self.path / JOURNAL, groups, trainer.cfg.resolved, encode(context)
        )

    def _catch_up(self, context: Context) -> None:
        """Take over what the run has learnt and decided so far."""
        trainer = self.trainer
        self._curriculum = curriculum = resume_curriculum(self.path / JOURNAL)
        try:
            self.start = context.start
            self._initial = CheckpointRef(INITIAL, context.initial)
            last = curriculum.checkpoint or self._initial
            record = self._load(checked_folder(self.path, last))
        except BaseException:
            curriculum.close()
            raise
        entries = curriculum.entries
        kept = [i for i, entry in enumerate(entries) if entry.checkpoint]
        rollbacks = len(entries) - (kept[-1] + 1 if kept else 0)
        trainer.learner.learning_rate = record.numbers["learning_rate"]
        for _ in range(rollbacks):  # One by one: a power would round otherwise.
            trainer.learner.learning_rate *= trainer.cfg.rollback_rate
        trainer.iteration = sum(entry.evidence.iterations for entry in entries)
        trainer.env_steps = curriculum.state.env_steps
        named = [entry.checkpoint.name for entry in entries if entry.checkpoint]
        remove_unnamed(self.path / CHECKPOINTS, r"phase-\d{5}", named)
        remove_unfinished(self.path)
        for name in (METRICS, TIMES):
            keep_lines(self.path / name, lambda line: line["phase"] < len(entries))
        times = (PhaseTimes(**line) for line in read_lines(self.path / TIMES))
        self.trained_s = sum(t.total_s for t in times)

    def _load(self, folder: Path, *, refit: bool = False) -> CheckpointRecord:
        """Take over what a checkpoint has learnt; its counters are in the record.

        With `refit`, its catalogue may have other parameters than the run's.
        """
        checkpoint = load_checkpoint(folder)
        tensors, ours = checkpoint.tensors, self.trainer.catalogue
        try:
            if refit:
                theirs = decode(Catalogue, checkpoint.record.catalogue)
                tensors = fit_catalogue(tensors, theirs, ours)
            load_state_tensors(self.trainer.learner, tensors)
        except InputError as error:
            raise InputError(f"{folder} is of another policy: {error}") from error
        return checkpoint.record

    def _follow_rank_0(self) -> None:
        """Let all ranks start from what rank 0 has learnt and counted."""
        trainer, learner = self.trainer, self.trainer.learner
        trainer.iteration, trainer.env_steps, learner.learning_rate = self.ranks.once(
            lambda: (trainer.iteration, trainer.env_steps, learner.learning_rate)
        )
        self.ranks.share(state_tensors(learner).values())

    def _check_ranks(self) -> None:
        """Refuse to go on where ranks have learnt different things."""
        learner = self.trainer.learner
        rate = torch.tensor(learner.learning_rate, dtype=torch.float64)
        self.ranks.check_same({**state_tensors(learner), "learning_rate": rate})


class Ahead(NamedTuple):
    """A phase to train, and what it needs to know."""

    proposal: Proposal
    reference: Reference | None
    """What gate C compares with."""
    outlook: tuple[Proposal, ...]
    """What may come after it."""


def find_reference(entries: Sequence[Entry]) -> Reference | None:
    """Return the last commit as gate C compares with it; None before the first."""
    commits = [entry for entry in entries if entry.decision.action == "commit"]
    if not commits:
        return None
    evidence = commits[-1].evidence
    return Reference(
        phase=commits[-1].proposal.phase,
        commits=len(commits) - 1,
        error=evidence.candidate_error,
        value=evidence.candidate_return,
    )
