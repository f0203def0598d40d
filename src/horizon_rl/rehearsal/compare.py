"""HORIZON beside the paper's rule, controls and peers, on three learners."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from statistics import fmean

from horizon_rl.domains import Catalogue
from horizon_rl.rehearsal.run import Rehearsal, RehearsalCfg
from horizon_rl.rehearsal.synthetic import SyntheticCfg, SyntheticPolicy, success_rate

COMPARED = (
    *("horizon", "paper", "joint", "no-rollback", "no-restore"),
    *("fixed", "linear", "wide", "adr", "scalar-adr", "plr", "doraemon"),
)
NEEDS = {"doraemon": "scipy"}
"""What a method needs beyond the base install."""
SEVERITIES = (0.25, 0.5, 0.75, 1.0)
EARLY = 10
"""Phases whose env steps are the smaller one of two budgets to compare at."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method on one learner, averaged over seeds."""

    learner: str
    method: str
    seeds: int
    phases: float
    rollbacks: float
    level: float
    """Mean level that counts as mastered, whether or not the gates passed."""
    own: float
    """Success at those levels: does the policy keep what the run claims?"""
    baseline: float
    """Success at level 0: is the old skill still there?"""
    single: float
    """Success with one group at level 0.5, mean over the groups."""
    all: float
    """Success with all groups at level 0.5."""
    area: float
    """Success with all groups at 0.25, 0.5, 0.75 and 1, mean of the four."""
    early: float
    """The same when the run had cost the env steps of `EARLY` phases' training."""
    env_steps: float


def learners(cfg: SyntheticCfg) -> dict[str, SyntheticCfg]:
    """Return the given learner between one that leaping suits and one that it does not.

    The forgiving one learns far beyond its skill, and hardly suffers where it cannot.
    The fragile one breaks where its episodes still last: scouts cannot tell.
    """
    return {
        "forgiving": replace(
            cfg, reach=0.8, fragility=0.1, ceiling_low=1.0, ceiling_high=1.1
        ),
        "as given": cfg,
        "fragile": replace(cfg, reach=cfg.reach * 0.6, survival=1.5, fragility=1.0),
    }


def installed_methods() -> tuple[str, ...]:
    """Name the methods to compare that have all they need."""
    missing = {name for name, module in NEEDS.items() if find_spec(module) is None}
    return tuple(name for name in COMPARED if name not in missing)


def compare(
    cfg: RehearsalCfg,
    catalogue: Catalogue,
    seeds: Sequence[int],
    methods: Sequence[str] | None = None,
) -> Iterator[Row]:
    """Run every method on every learner over all seeds; yields row by row."""
    for name, learner in learners(cfg.learner).items():
        for method in methods or installed_methods():
            variant = replace(cfg, learner=learner, method=method)
            runs = [_run(replace(variant, seed=s), catalogue) for s in seeds]
            yield _row(name, method, runs)


def _run(cfg: RehearsalCfg, catalogue: Catalogue) -> tuple[Rehearsal, SyntheticPolicy]:
    """Rehearse to the end; return the run, and its policy at the smaller budget."""
    rehearsal = Rehearsal.in_memory(cfg, catalogue)
    early = rehearsal.policy
    for _ in rehearsal.phases():
        if rehearsal.curriculum.state.env_steps <= EARLY * cfg.learner.phase_env_steps:
            early = rehearsal.policy
    return rehearsal, early


def area(policy: SyntheticPolicy, cfg: SyntheticCfg) -> float:
    """Return the mean success over severities, all groups together."""
    return fmean(
        success_rate(policy, dict.fromkeys(policy.skill, severity), cfg)
        for severity in SEVERITIES
    )


def _row(
    learner: str, method: str, pairs: Sequence[tuple[Rehearsal, SyntheticPolicy]]
) -> Row:
    runs = [run for run, _ in pairs]
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
        area=fmean(area(r.policy, r.cfg.learner) for r in runs),
        early=fmean(area(policy, r.cfg.learner) for r, policy in pairs),
        env_steps=fmean(r.curriculum.state.env_steps for r in runs),
    )
