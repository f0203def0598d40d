"""Rehearse a curriculum: run it against the synthetic learner, with or without disk."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from horizon_rl.curriculum import (
    CheckpointRef,
    Clock,
    Curriculum,
    CurriculumCfg,
    Entry,
    Method,
    MethodCfgs,
    Plan,
    Proposal,
    State,
    check_method,
    choose_method,
)
from horizon_rl.curriculum.entry import is_on_hold, last_commit
from horizon_rl.curriculum.method import check_plan
from horizon_rl.curriculum.methods import GRAM
from horizon_rl.domains import Catalogue
from horizon_rl.rehearsal.synthetic import SyntheticCfg, SyntheticPolicy, novice
from horizon_rl.rehearsal.worlds import EPISODES, SyntheticLearner, SyntheticWorlds
from horizon_rl.runs.directory import RunDirectory
from horizon_rl.runs.journal import create_curriculum, read_header, resume_curriculum
from horizon_rl.runs.paths import journal_of
from horizon_rl.support.bounds import Count, Seed, Share
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import decode, dumps, encode
from horizon_rl.training.loop import run_phases
from horizon_rl.training.protocols import Recorder

POLICY = "policy.json"


@dataclass(frozen=True, kw_only=True)
class RehearsalCfg(MethodCfgs):
    """One rehearsal: which curriculum, on which learner."""

    groups: str = "core"
    """Domain groups to widen: core, full, or names with commas between them."""
    method: str = "horizon"
    """HORIZON (horizon), the paper's rule (paper), its ablations joint, feasibility-only,
    no-rollback and no-restore; automatic domain randomisation (adr), one difficulty moved
    by success and failure (scalar-adr), the widest distribution under which enough
    episodes succeed (doraemon), instances met again by what is learnt from them (plr); or
    a control: fixed, linear, wide, base."""
    seed: Seed = 0
    """Seed of the learner's hidden ceilings and of all noise."""
    linear_phases: Count = 50
    """Phases in which method `linear` goes from level 0 to its end."""
    level: Share = 0.5
    """Level that method `fixed` stays at and `linear` ends at."""
    curriculum: CurriculumCfg = field(default_factory=CurriculumCfg)
    """The curriculum's settings."""
    learner: SyntheticCfg = field(default_factory=SyntheticCfg)
    """The synthetic learner's settings."""

    def __post_init__(self):
        super().__post_init__()
        check_method(self.method)
        if self.method in (GRAM, "distill"):
            raise InputError(
                f"{self.method} is a way to learn at given levels, and the synthetic "
                "learner has its own: rehearse fixed instead"
            )

    def make_method(self, catalogue: Catalogue) -> Method:
        """Return the curriculum's method with its settings."""
        groups, phases = catalogue.select(self.groups), self.curriculum.max_phases
        plan = Plan.of(catalogue, groups, phases, episodes=EPISODES)
        method = choose_method(
            self.method,
            self.curriculum,
            self,
            plan=plan,
            clock_phases=self.linear_phases,
            clock_level=self.level,
        )
        if not isinstance(method, Clock):
            check_plan(plan, groups)
        return method


class Rehearsal(Recorder):
    """A curriculum, a synthetic policy, and the directory they live in, if any."""

    def __init__(
        self,
        cfg: RehearsalCfg,
        catalogue: Catalogue,
        curriculum: Curriculum,
        run: Path | None = None,
    ):
        self.cfg, self.catalogue, self.curriculum = cfg, catalogue, curriculum
        self.run = run
        self._directory = RunDirectory(run) if run else None
        self._worlds = SyntheticWorlds(cfg.learner, cfg.seed)
        self._learner = SyntheticLearner(self._load(curriculum.checkpoint), cfg.learner)

    @classmethod
    def in_memory(cls, cfg: RehearsalCfg, catalogue: Catalogue) -> "Rehearsal":
        curriculum = Curriculum(
            catalogue.select(cfg.groups), cfg.make_method(catalogue)
        )
        return cls(cfg, catalogue, curriculum)

    @classmethod
    def create(cls, cfg: RehearsalCfg, catalogue: Catalogue, run: Path) -> "Rehearsal":
        """Start a rehearsal in a directory of its own."""
        groups, method = catalogue.select(cfg.groups), cfg.make_method(catalogue)
        context = {"rehearsal": encode(cfg), "catalogue": encode(catalogue)}
        journal = RunDirectory.create(run).journal
        curriculum = create_curriculum(journal, groups, method, context)
        return cls(cfg, catalogue, curriculum, run)

    @classmethod
    def resume(cls, run: Path) -> "Rehearsal":
        """Go on with the rehearsal in `run` after its last judged phase."""
        cfg, catalogue = read_context(run)
        curriculum = resume_curriculum(journal_of(run))
        try:
            RunDirectory(run).pick_up(curriculum.entries)
            return cls(cfg, catalogue, curriculum, run)
        except BaseException:
            curriculum.close()
            raise

    @property
    def policy(self) -> SyntheticPolicy:
        return self._learner.policy

    def phases(self) -> Iterator[Entry]:
        """Run phase after phase until the curriculum ends; yields each when judged."""
        events = run_phases(self.curriculum, self._worlds, self._learner, recorder=self)
        return (event for event in events if isinstance(event, Entry))

    def last_commit(self) -> SyntheticPolicy | None:
        entries = self.curriculum.entries
        return self._load(last_commit(entries)) if is_on_hold(entries) else None

    def save(self, proposal: Proposal, after: State) -> CheckpointRef | None:
        if self._directory is None:
            return None
        text = dumps(encode(self.policy))
        return self._directory.write_checkpoint(
            proposal.phase, lambda folder: (folder / POLICY).write_text(text)
        )

    def close(self) -> None:
        self.curriculum.close()

    def _load(self, checkpoint: CheckpointRef | None) -> SyntheticPolicy:
        if checkpoint is None or self._directory is None:
            groups = tuple(self.curriculum.state.mastered)
            return novice(groups, self.cfg.learner, self.cfg.seed)
        folder = self._directory.find_checkpoint(checkpoint)
        return decode(SyntheticPolicy, json.loads((folder / POLICY).read_text()))


def read_context(run: Path) -> tuple[RehearsalCfg, Catalogue]:
    """Read what the rehearsal in `run` was started with."""
    context = read_header(journal_of(run)).context
    if "rehearsal" not in context:
        raise InputError(f"{run} holds a run, but not a rehearsal")
    cfg = decode(RehearsalCfg, context["rehearsal"])
    return cfg, decode(Catalogue, context.get("catalogue"))
