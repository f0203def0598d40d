"""Runs whose numbers are known, made in memory."""

from dataclasses import fields, replace
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


def show(arrays: Phase) -> Evidence:
    """Return what a phase's episodes show, as the loop puts it."""
    known = {field.name for field in fields(Evidence)}
    means: dict[str, Any] = {}
    for key, values in arrays.items():
        probe, _, what = key.rpartition("_")
        if probe == "window" or what.startswith("size:"):
            continue
        means[key] = float(np.mean(values)) / (LONGEST if what == "length" else 1)
        for size in ("small", "large") if what == "error" else ():
            if (mask := arrays.get(f"{probe}_size:{size}")) is not None:
                means[f"{key}:{size}"] = float(np.mean(values[mask]))
    length = arrays["window_length"] / LONGEST
    return Evidence(
        length=float(np.mean(length)),
        tracking_error=float(np.mean(arrays["window_error"])),
        length_se=float(np.std(length, ddof=1)) / len(length) ** 0.5,
        **{k: v for k, v in means.items() if k in known},
        probed={k: v for k, v in means.items() if k not in known},
        episodes=10,
        iterations=2,
        env_steps=500,
        aborted="candidate_error" not in means,
    )


def make_run(
    *phases: Phase, method=None, name="horizon", seed=3, **changes
) -> RunFiles:
    """Run a curriculum through phases; two iterations of 200 env steps each."""
    curriculum = Curriculum(["mass", "com"], method or Paper())
    for arrays in phases:
        curriculum.tell(show(arrays))
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
        times={},
    )
    return replace(files, **changes)
