"""Runs whose numbers are known, made in memory."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy")

from horizon_rl.curriculum import (
    Curriculum,
    Evidence,
    Paper,
)
from horizon_rl.curriculum.method import name_of, settings_of
from horizon_rl.runs.journal import Header, Replay
from horizon_rl.runs.read import RunFiles

LONGEST, N = 100, 64
CONTEXT = {
    "train": {
        **{"method": "paper", "seed": 3, "num_envs": 4, "steps": 0, "minutes": 0.0},
        **{"task": {"episode_s": 2.0}, "learner": {"ppo": {"num_steps": 50}}},
    },
    "ranks": 1,
}
PROBES = ("checkpoint", "candidate", "anchor")
Phase = dict[str, np.ndarray]


def phase(length=95.0, error=0.2, checkpoint=0.2, value=10.0, candidate=0.2) -> Phase:
    """Return a phase's arrays with these means, and some spread around them."""
    around = np.linspace(-1.0, 1.0, N)
    arrays = {
        "window_length": np.full(10, length),
        "window_error": error + 0.1 * around[:10] - 0.1 * around[:10].mean(),
    }
    for probe, e in zip(PROBES, (checkpoint, candidate, 0.1), strict=True):
        arrays[f"{probe}_error"] = e + 0.1 * around
        arrays[f"{probe}_return"] = value + around
    return arrays


def first() -> Phase:
    return {k: v for k, v in phase().items() if not k.startswith("checkpoint")}


def cut_short() -> Phase:
    return {k: v for k, v in phase(20.0).items() if k.startswith("window")}


def make_run(
    *phases: Phase, method=None, name="horizon", seed=3, **changes
) -> RunFiles:
    """Run a curriculum through phases; two iterations of 200 env steps each."""
    curriculum = Curriculum(["mass", "com"], method or Paper())
    for arrays in phases:
        means = {key: float(np.mean(values)) for key, values in arrays.items()}
        figures: dict[str, Any] = {
            k: v for k, v in means.items() if not k.startswith("window")
        }
        evidence = Evidence(
            length=means["window_length"] / LONGEST,
            tracking_error=means["window_error"],
            **figures,
            episodes=10,
            iterations=2,
            env_steps=500,
            aborted="candidate_error" not in means,
        )
        curriculum.tell(evidence)
    context = {**CONTEXT, "train": {**CONTEXT["train"], "seed": seed}}
    header = Header(
        schema=3,
        version="0",
        groups=("mass", "com"),
        method=name_of(curriculum.method),
        settings=settings_of(curriculum.method),
        curriculum=curriculum.cfg,
        context=context,
    )
    entries = tuple(curriculum.entries)
    journal = Replay(
        header=header, entries=entries, state=curriculum.state, num_bytes=0
    )
    files = RunFiles(
        name=name,
        path=Path(f"{name}-{seed}"),
        journal=journal,
        evidence=dict(enumerate(phases)),
        damaged={},
        metrics=(),
        times=(),
    )
    return replace(files, **changes)
