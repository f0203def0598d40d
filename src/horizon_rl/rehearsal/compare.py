"""HORIZON beside its ablations on learners of three tempers: when rollback pays."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from horizon_rl.domains import Catalogue
from horizon_rl.rehearsal.run import Rehearsal, RehearsalCfg, run_to_end
from horizon_rl.rehearsal.synthetic import SyntheticCfg, success_rate

COMPARED = ("horizon", "no-rollback", "wide", "linear", "joint")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method on one learner, averaged over seeds."""

    learner: str
    method: str
    seeds: int
    phases: float
    rollbacks: float
    level: float
    """Mean level that counts as mastered, deserved or not."""
    own: float
    """Success at those levels: does the policy keep what the run claims?"""
    baseline: float
    """Success at level 0: is the old skill still there?"""
    single: float
    """Success with one group at level 0.5, mean over the groups."""
    all: float
    """Success with all groups at level 0.5."""


def learners(cfg: SyntheticCfg) -> dict[str, SyntheticCfg]:
    """Return the given learner, one that shrugs off mistakes, and a brittle one."""
    return {
        "forgiving": replace(
            cfg, reach=0.4, fragility=0.1, ceiling_low=1.0, ceiling_high=1.1
        ),
        "as given": cfg,
        "fragile": replace(cfg, reach=cfg.reach * 0.6, fragility=1.0),
    }


def compare(
    cfg: RehearsalCfg, catalogue: Catalogue, seeds: Sequence[int]
) -> Iterator[Row]:
    """Run every method on every learner over all seeds; yields row by row."""
    for name, learner in learners(cfg.learner).items():
        for method in COMPARED:
            variant = replace(cfg, learner=learner, method=method)
            runs = [run_to_end(replace(variant, seed=s), catalogue) for s in seeds]
            yield _row(name, method, runs)


def _row(learner: str, method: str, runs: Sequence[Rehearsal]) -> Row:
    groups = tuple(runs[0].policy.skill)
    baseline = dict.fromkeys(groups, 0.0)

    def mean_success(levels: dict[str, float]) -> float:
        return fmean(success_rate(r.policy, levels, r.cfg.learner) for r in runs)

    return Row(
        learner=learner,
        method=method,
        seeds=len(runs),
        phases=fmean(r.curriculum.state.phase for r in runs),
        rollbacks=fmean(
            sum(not e.decision.keeps_weights for e in r.curriculum.entries)
            for r in runs
        ),
        level=fmean(r.curriculum.state.difficulty for r in runs),
        own=fmean(
            success_rate(r.policy, r.curriculum.state.mastered, r.cfg.learner)
            for r in runs
        ),
        baseline=mean_success(baseline),
        single=fmean(mean_success({**baseline, group: 0.5}) for group in groups),
        all=mean_success(dict.fromkeys(groups, 0.5)),
    )
