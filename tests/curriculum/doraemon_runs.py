"""DORAEMON with a policy that lasts where all its levels are low enough."""

from typing import Any

import numpy as np

from horizon_rl.curriculum import (
    Curriculum,
    CurriculumCfg,
    Doraemon,
    DoraemonCfg,
    Entry,
    Evidence,
    GateCfg,
    Outcomes,
    Plan,
)
from horizon_rl.domains import paper_catalogue

GROUPS = ("mass", "com")
CATALOGUE = paper_catalogue()


def method(phases=20, groups=GROUPS, catalogue=CATALOGUE, **settings: Any) -> Any:
    plan = Plan.of(catalogue, groups, phases=phases, episodes=400)
    return Doraemon(
        cfg=CurriculumCfg(gates=GateCfg(preservation=False), max_phases=phases),
        doraemon=DoraemonCfg(**settings),
        plan=plan,
    )


def evidence(proposal: Any, limit=0.3, n=400) -> Any:
    """Episodes of a policy that lasts where all levels are at most `limit`."""
    marks = proposal.distribution.sample_levels(
        n, np.random.default_rng(proposal.phase)
    )[1]
    levels = np.round(np.concatenate([*marks.values()], axis=1), 6)
    lasts = levels.max(axis=1) <= limit
    outcomes = Outcomes(
        row=tuple(range(n)),
        length=tuple(np.where(lasts, 1.0, 0.3).tolist()),
        tracking_error=(0.2,) * n,
        values=tuple(map(tuple, levels.tolist())),
    )
    return Evidence(
        length=float(np.mean(outcomes.length)),
        tracking_error=0.2,
        outcomes=outcomes,
        env_steps=1000,
    )


def run(curriculum: Curriculum, **how: Any) -> Any:
    while proposal := curriculum.ask():
        curriculum.tell(evidence(proposal, **how))
    return curriculum


def shapes_at(entry: Entry) -> np.ndarray:
    proposal: Any = entry.proposal
    return np.array([*proposal.shapes.values()]).T
