"""How much gate C's verdicts depend on the scenarios that were drawn.

Of error and return over all bodies, which is all of the paper's gate C.
"""

from dataclasses import dataclass

import numpy as np

from horizon_rl.curriculum import GateCfg
from horizon_rl.evaluation.studies.recheck import (
    finite_mean,
    gates_in_force,
    passes_gate_c,
    with_reference,
)
from horizon_rl.runs.read import Arrays, RunFiles

REPEATS = 200
"""Resamples per phase; rates are means over a run's phases."""


@dataclass(frozen=True, kw_only=True)
class GateStability:
    """How much of gate C is chance of the scenarios. Rates are None without phases."""

    commits: int
    """Commits whose own scenarios are on file."""
    scenarios: int | None
    """Scenarios of a probe."""
    paired: float | None
    """Rate at which a commit fails gate C against itself on the same scenarios: 0, by
    construction where physics repeats."""
    unpaired: float | None
    """The same on two draws with replacement from its scenarios, a probe's size each."""
    halves: float | None
    """The same on two random halves of them."""
    passes: int
    """Phases that passed gate C."""
    passes_overturned: float | None
    """Rate at which another draw of scenarios, common to both, fails them."""
    failures: int
    failures_overturned: float | None
    """Rate at which such a draw passes what gate C failed."""


def measure_gate_stability(run: RunFiles, rng: np.random.Generator) -> GateStability:
    """Resample the scenarios behind gate C's comparisons."""
    gates = gates_in_force(run.journal.header.make_method())
    sizes, rates, overturned = [], [], {True: [], False: []}
    for phase, (entry, reference) in enumerate(with_reference(run)):
        arrays = run.evidence.get(phase, {})
        own = _pairs(arrays, "candidate_")
        if entry.decision.action == "commit" and len(own) > 1:
            sizes.append(len(own))
            rates.append(_fail_itself(own, gates, rng))
        now, then = _pairs(arrays, "checkpoint_"), _pairs(reference or {})
        judged = entry.decision.verdict.preserved is not None
        if judged and len(now) == len(then) > 0:
            verdict = bool(passes_gate_c(now.mean(axis=0), then.mean(axis=0), gates))
            ids = rng.integers(len(now), size=(REPEATS, len(now)))
            means = now[ids].mean(axis=1), then[ids].mean(axis=1)
            overturned[verdict].append(np.mean(passes_gate_c(*means, gates) != verdict))
    paired, unpaired, halves = np.mean(rates, axis=0).tolist() if rates else [None] * 3
    return GateStability(
        commits=len(rates),
        scenarios=max(sizes, default=None),
        paired=paired,
        unpaired=unpaired,
        halves=halves,
        passes=len(overturned[True]),
        passes_overturned=finite_mean(np.array(overturned[True])),
        failures=len(overturned[False]),
        failures_overturned=finite_mean(np.array(overturned[False])),
    )


def _fail_itself(
    own: np.ndarray, gates: GateCfg, rng: np.random.Generator
) -> list[float]:
    """Return how often a policy fails against itself: paired, unpaired, in halves."""
    n, half = len(own), len(own) // 2
    whole = own.mean(axis=0)
    draws = own[rng.integers(n, size=(2, REPEATS, n))].mean(axis=2)
    shuffled = own[rng.permuted(np.tile(np.arange(n), (REPEATS, 1)), axis=1)]
    halves = shuffled[:, :half].mean(axis=1), shuffled[:, half : 2 * half].mean(axis=1)
    pairs = ((whole, whole), draws, halves)
    return [1.0 - float(np.mean(passes_gate_c(x, y, gates))) for x, y in pairs]


def _pairs(arrays: Arrays, probe: str = "") -> np.ndarray:
    """Return errors and returns of a probe's scenarios, [scenarios, 2]; none if unknown."""
    error, value = (arrays.get(f"{probe}{what}", ()) for what in ("error", "return"))
    known = len(error) == len(value)
    return np.stack([error, value], axis=1) if known else np.empty((0, 2))
