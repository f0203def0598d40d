"""Rehearse a curriculum: run it against the synthetic learner, with or without disk."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from horizon_rl.curriculum import (
    CheckpointRef,
    Curriculum,
    CurriculumCfg,
    Decision,
    Entry,
    Method,
    apply_method,
    phase_rng,
)
from horizon_rl.domains import Catalogue
from horizon_rl.rehearsal.learner import LearnerCfg, Policy, examine, novice, train
from horizon_rl.runs.journal import create_curriculum, read_header, resume_curriculum
from horizon_rl.runs.paths import CHECKPOINTS, JOURNAL, phase_name
from horizon_rl.support.durable import (
    digest_directory,
    make_run_directory,
    remove_unnamed,
    write_directory,
)
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import decode, dumps, encode

POLICY = "policy.json"


@dataclass(frozen=True, kw_only=True)
class RehearsalCfg:
    """One rehearsal: which curriculum, on which learner."""

    groups: str = "core"
    """Domain groups to widen: core, full, or names with commas between them."""
    method: Method = "horizon"
    """HORIZON, or one of its ablations and controls."""
    seed: int = 0
    """Seed of the learner's hidden ceilings and of all noise."""
    linear_phases: int = 50
    """Phases in which method `linear` goes from level 0 to level 1."""
    curriculum: CurriculumCfg = field(default_factory=CurriculumCfg)
    """The curriculum's settings."""
    learner: LearnerCfg = field(default_factory=LearnerCfg)
    """The synthetic learner's settings."""

    def __post_init__(self):
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}; accepted: 0 and above")
        if self.linear_phases < 1:
            raise InputError(f"linear_phases is {self.linear_phases}; at least 1")

    @property
    def resolved(self) -> CurriculumCfg:
        """The curriculum's settings with the method applied."""
        return apply_method(
            self.method, self.curriculum, clock_phases=self.linear_phases
        )


class Rehearsal:
    """A curriculum, a synthetic policy, and the directory they live in, if any."""

    def __init__(
        self,
        cfg: RehearsalCfg,
        catalogue: Catalogue,
        curriculum: Curriculum,
        run: Path | None = None,
    ):
        self.cfg = cfg
        self.catalogue = catalogue
        self.curriculum = curriculum
        self.run = run
        self.policy = self._load(curriculum.checkpoint)

    @classmethod
    def in_memory(cls, cfg: RehearsalCfg, catalogue: Catalogue) -> "Rehearsal":
        curriculum = Curriculum(catalogue.select(cfg.groups), cfg.resolved)
        return cls(cfg, catalogue, curriculum)

    @classmethod
    def create(cls, cfg: RehearsalCfg, catalogue: Catalogue, run: Path) -> "Rehearsal":
        """Start a rehearsal in a directory of its own."""
        groups = catalogue.select(cfg.groups)
        context = {"rehearsal": encode(cfg), "catalogue": encode(catalogue)}
        make_run_directory(run, JOURNAL)
        curriculum = create_curriculum(run / JOURNAL, groups, cfg.resolved, context)
        return cls(cfg, catalogue, curriculum, run)

    @classmethod
    def resume(cls, run: Path) -> "Rehearsal":
        """Go on with the rehearsal in `run` after its last judged phase."""
        cfg, catalogue = read_context(run)
        curriculum = resume_curriculum(run / JOURNAL)
        try:
            named = [e.checkpoint.name for e in curriculum.entries if e.checkpoint]
            remove_unnamed(run / CHECKPOINTS, r"phase-\d{5}", named)
            return cls(cfg, catalogue, curriculum, run)
        except BaseException:
            curriculum.close()
            raise

    def phases(self) -> Iterator[Entry]:
        """Run phase after phase until the curriculum ends; yields each when judged."""
        cfg = self.cfg.learner
        while proposal := self.curriculum.ask():
            trained = train(self.policy, proposal.levels, cfg)
            rng = phase_rng(self.cfg.seed, proposal.phase)
            evidence = examine(trained, self.policy, proposal, cfg, rng)
            save = partial(_save, self.run, trained) if self.run else None
            decision = self.curriculum.tell(evidence, save)
            # A rollback restores the checkpoint, which is where the phase began.
            if decision.keeps_weights:
                self.policy = trained
            yield self.curriculum.entries[-1]

    def close(self) -> None:
        self.curriculum.close()

    def _load(self, checkpoint: CheckpointRef | None) -> Policy:
        if checkpoint is None or self.run is None:
            groups = tuple(self.curriculum.state.mastered)
            return novice(groups, self.cfg.learner, self.cfg.seed)
        path = self.run / CHECKPOINTS / checkpoint.name
        if not path.is_dir() or digest_directory(path) != checkpoint.digest:
            raise InputError(f"checkpoint {path} is missing or damaged: cannot go on")
        return decode(Policy, json.loads((path / POLICY).read_text()))


def _save(run: Path, policy: Policy, decision: Decision) -> CheckpointRef:
    name = phase_name(decision.phase)
    text = dumps(encode(policy))
    digest = write_directory(
        run / CHECKPOINTS / name, lambda folder: (folder / POLICY).write_text(text)
    )
    return CheckpointRef(name, digest)


def read_context(run: Path) -> tuple[RehearsalCfg, Catalogue]:
    """Read what the rehearsal in `run` was started with."""
    if not (run / JOURNAL).exists():
        raise InputError(f"{run} holds no run to resume: there is no {JOURNAL} in it")
    context = read_header(run / JOURNAL).context
    if "rehearsal" not in context:
        raise InputError(f"{run} holds a run, but not a rehearsal")
    cfg = decode(RehearsalCfg, context["rehearsal"])
    return cfg, decode(Catalogue, context.get("catalogue"))


def run_to_end(cfg: RehearsalCfg, catalogue: Catalogue) -> Rehearsal:
    """Rehearse in memory, to the end."""
    rehearsal = Rehearsal.in_memory(cfg, catalogue)
    for _ in rehearsal.phases():
        pass
    return rehearsal
