"""A run: worlds, a learner and the curriculum that governs them, kept on disk.

With several ranks, only rank 0 reads and writes; all hold the same curriculum, since all
tell it the same evidence.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from horizon_rl.curriculum import (
    CheckpointRef,
    Curriculum,
    Entry,
    Method,
    Proposal,
    State,
)
from horizon_rl.curriculum.entry import is_on_hold, last_commit, rollbacks_since
from horizon_rl.domains import Catalogue
from horizon_rl.domains.distribution import MARKS
from horizon_rl.learning import Scoring
from horizon_rl.physics import effect_digests, own_effects
from horizon_rl.policies.teachers import LoadedTeacher, check_teachers, load_teacher
from horizon_rl.runs.budget import Budget, write_budget
from horizon_rl.runs.directory import PhaseTimes, RunDirectory, initial_checkpoint
from horizon_rl.runs.journal import create_curriculum, read_header, resume_curriculum
from horizon_rl.support.errors import InputError, unknown
from horizon_rl.support.ranks import ALONE, Ranks
from horizon_rl.support.trust import trust_code
from horizon_rl.training.config import TrainCfg, widened_groups
from horizon_rl.training.context import Context, read_context
from horizon_rl.training.learner import TorchLearner
from horizon_rl.training.loop import run_phases
from horizon_rl.training.protocols import Iteration, PhaseResult, Recorder
from horizon_rl.training.worlds import SimulatedWorlds

SCRATCH = "from scratch"


def load_teachers(cfg: TrainCfg, catalogue: Catalogue) -> list[LoadedTeacher]:
    """Load the teachers that settings name."""
    return [
        load_teacher(text, catalogue, cfg.task, cfg.learner.ppo.num_steps)
        for text in cfg.teachers
    ]


class Run(Recorder):
    """A training run: it records what the loop does, and ends it with its budget."""

    curriculum: Curriculum
    """What governs the run."""

    def __init__(
        self,
        cfg: TrainCfg,
        catalogue: Catalogue,
        path: Path,
        device: str = "auto",
        ranks: Ranks = ALONE,
    ):
        """Build worlds and learner; `create` and `resume` say what it starts from."""
        self.cfg, self.catalogue, self.path, self.ranks = cfg, catalogue, path, ranks
        self.worlds = SimulatedWorlds(cfg, catalogue, device, ranks)
        self.teachers = load_teachers(cfg, catalogue)
        actors = [teacher.actor for teacher in self.teachers]
        self.learner = TorchLearner(self.worlds, catalogue, actors)
        self.directory = RunDirectory(path)
        self.trained_s = 0.0
        """Seconds of finished phases, before the run was last resumed included."""
        self.stopped = False
        """Whether it ended because it was asked to."""
        self.start = SCRATCH
        """What it started from, in words."""
        self._phase_began = time.perf_counter()
        self._last_commit: Any = None

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
        teachers = load_teachers(cfg, catalogue)
        # From now on by checkpoint: a teacher's own run may go on.
        cfg = replace(cfg, teachers=tuple(teacher.source for teacher in teachers))
        taught_by = tuple(teacher.about for teacher in teachers)
        method = cfg.make_method(catalogue, ranks.size, taught_by)
        method.start(groups)  # Refuses what cannot start before worlds are built.
        for parameter in method.outcome_parameters or ():
            known = (*catalogue.parameters, *catalogue.names, *MARKS)
            if parameter not in known:
                raise InputError(unknown("parameter", parameter, known))
        run = cls(cfg, catalogue, path, device, ranks)
        run._check_scores(method)
        if init:
            run.start = f"from {name or init}"
        ranks.once(lambda: run._make_directory(groups, method, init))
        if not ranks.leads:
            run.curriculum = Curriculum(groups, method)
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
        trust: bool = False,
    ) -> "Run":
        """Go on after the last judged phase, perhaps with a new budget.

        The device may be another: it is not part of what a run is. Only on the same CPU
        does the run go on as if it had not been interrupted, to the bit. The number of
        ranks must be the same: it says how many worlds there are. With `trust`, code that
        the run's catalogue names is run even if the user has never run it.
        """
        context = ranks.once(lambda: read_context(path))
        ranks.once(lambda: context.check_code(path, trust))
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
        if cfg != was:
            cfg.check_budget()
        run = cls(cfg, context.catalogue, path, device, ranks)
        run.start = context.start
        method, entries, is_old = ranks.once(lambda: run._catch_up(context))
        if not ranks.leads:
            groups = widened_groups(cfg, context.catalogue)
            run.curriculum = Curriculum(groups, method, entries=entries)
        if is_old:
            # The last commit was measured on scenarios that nobody meets again.
            run.curriculum.forget_reference()
        if cfg != was:
            ranks.once(lambda: write_budget(path, run.budget))
        return run

    def _check_scores(self, method: Method) -> None:
        has_scores = isinstance(self.learner.algorithm, Scoring)
        self.cfg.check_scores(method, has_scores=has_scores)

    @property
    def budget(self) -> Budget:
        return Budget(steps=self.cfg.steps, minutes=self.cfg.minutes)

    @property
    def checkpoint(self) -> Path:
        """The checkpoint that the run would go on from."""
        return self.directory.checkpoint(self.curriculum.checkpoint)

    @property
    def spent_s(self) -> float:
        """Seconds of the run so far, the phase under way included."""
        return self.trained_s + time.perf_counter() - self._phase_began

    @property
    def ended(self) -> str | None:
        """Why the run is at its end, in words; None while it goes on."""
        state = self.curriculum.state
        return state.ended or self.budget.spent(state.env_steps, self.trained_s)

    def events(
        self, stop_asked: Callable[[], bool] = lambda: False
    ) -> Iterator[Iteration | Entry]:
        """Train phase after phase; yields every iteration, and every judged phase.

        Where `stop_asked` says so after an iteration, the run stops there. The phase
        was not judged: it runs again when the run is resumed.
        """
        self.learner.follow_rank_0()
        if is_on_hold(self.curriculum.entries):
            self._last_commit = self.learner.snapshot()
            self.ranks.once(lambda: self._load(self.curriculum.checkpoint))
            self.learner.follow_rank_0()
        self._follow_schedules(self.curriculum.state.env_steps)
        self._phase_began = time.perf_counter()
        for event in run_phases(
            self.curriculum,
            self.worlds,
            self.learner,
            iterations=self.cfg.iterations,
            window=self.cfg.window,
            recorder=self,
        ):
            yield event
            if isinstance(event, Iteration):
                self.stopped = self.ranks.once(stop_asked)
                if self.stopped:
                    return

    def close(self) -> None:
        """Let another process go on with the run."""
        if hasattr(self, "curriculum"):
            self.curriculum.close()

    # What the loop asks of a recorder.

    def has_budget(self) -> bool:
        return self.ranks.once(lambda: self.ended is None)

    def progress(self, env_steps: int) -> float | None:
        # Minutes do not count: a run would learn something else on another machine.
        if not self.cfg.steps:
            return None
        # Nor what teachers had spent before it began.
        before = getattr(self.curriculum.method, "charged", 0)
        return min(1.0, (env_steps - before) / max(1, self.cfg.steps - before))

    def last_commit(self) -> Any:
        return self._last_commit

    def record_iteration(self, phase: int, iteration: Iteration) -> None:
        self._follow_schedules(iteration.env_steps)
        if self.ranks.leads:
            self.directory.write_metrics({"phase": phase, **asdict(iteration)})

    def record_evidence(self, phase: int, result: PhaseResult) -> None:
        self.learner.check_ranks()
        write = self.directory.write_evidence
        self.ranks.once(lambda: write(phase, result.window, result.probes))

    def save(self, proposal: Proposal, after: State) -> CheckpointRef:
        # What a commit keeps may be less than the proposal; what is held is on trial.
        reference = after.reference
        committed = reference is not None and reference.phase == proposal.phase
        levels = after.mastered if committed else proposal.levels
        write = self._write_checkpoint
        return self.ranks.once(lambda: write(proposal.phase, after, levels))

    def record_times(self, times: PhaseTimes) -> None:
        self.trained_s += times.total_s
        self._phase_began = time.perf_counter()
        keep, entries = self.cfg.keep_checkpoints, self.curriculum.entries
        self.ranks.once(lambda: self.directory.write_times(times))
        self.ranks.once(lambda: self.directory.keep_checkpoints(entries, keep))
        # With the last probes: where a run that is resumed here goes on.
        self._follow_schedules(self.curriculum.state.env_steps)

    def _follow_schedules(self, env_steps: int) -> None:
        """Tell the algorithm how much of its env steps is spent."""
        self.learner.algorithm.schedule(self.progress(env_steps) or 0.0)

    def _write_checkpoint(
        self, phase: int | None, state: State, levels: dict[str, float]
    ) -> CheckpointRef:
        fill = partial(self.learner.write, state=state, levels=levels)
        return self.directory.write_checkpoint(phase, fill)

    def _make_directory(
        self, groups: tuple[str, ...], method: Method, init: Path | None
    ) -> None:
        if init:
            # It may not fit: then nothing has been written.
            self.learner.load(init, refit=True)
        RunDirectory.create(self.path)
        initial = self._write_checkpoint(None, method.start(groups), {})
        context = Context(
            train=self.cfg,
            catalogue=self.catalogue,
            ranks=self.ranks.size,
            initial=initial.digest,
            start=self.start,
            code=effect_digests(self.catalogue),
        )
        trust_code(own_effects(self.catalogue).values())
        # Last: no run exists that lacks its start.
        self.curriculum = create_curriculum(
            self.directory.journal, groups, method, context.to_record()
        )

    def _catch_up(self, context: Context) -> tuple[Method, list[Entry], bool]:
        """Take over what the run has learnt and decided so far.

        Returns:
            The curriculum's method, the phases judged, and whether an older version
            wrote the run, which drew sensor noise (schema 1) and pushes otherwise.
        """
        self.curriculum = curriculum = resume_curriculum(self.directory.journal)
        entries = curriculum.entries
        try:
            check_teachers(self.teachers, getattr(curriculum.method, "teachers", ()))
            self._check_scores(curriculum.method)
            self._initial = context.initial
            on_hold, last = is_on_hold(entries), curriculum.checkpoint
            if on_hold and last:  # It is loaded later, and must be sound already.
                self.directory.find_checkpoint(last)
            self._load(last_commit(entries) if on_hold else last)
        except BaseException:
            curriculum.close()
            raise
        self.trained_s = self.directory.pick_up(entries, self.cfg.keep_checkpoints)
        is_old = read_header(self.directory.journal).schema < 3
        return curriculum.method, entries, is_old

    def _load(self, named: CheckpointRef | None) -> None:
        """Take over a checkpoint, with the learning rate as rollbacks left it."""
        checkpoint = named or initial_checkpoint(self._initial)
        record = self.learner.load(self.directory.find_checkpoint(checkpoint))
        self.learner.algorithm.learning_rate = record.numbers["learning_rate"]
        self.learner.cut_rate(rollbacks_since(named, self.curriculum.entries))
