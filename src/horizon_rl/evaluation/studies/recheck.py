"""Verdicts once more, from the episodes on file and plain numpy.

The journal's replay derives decisions from its own numbers. Here the numbers themselves
are taken from the episodes again, and the gates are written out a second time: none
of the code that judged the run is used.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from horizon_rl.curriculum import Entry, GateCfg
from horizon_rl.runs.read import Arrays, RunFiles

TOLERANCE = 1e-6
"""Allowed difference of a number, relative to 1 or its size: files hold float32."""


@dataclass(frozen=True, kw_only=True)
class Disagreement:
    """A phase whose record does not follow from its episodes."""

    phase: int
    what: str


@dataclass(frozen=True, kw_only=True)
class Recheck:
    """How a run's verdicts fare when they are computed again."""

    phases: int
    checked: int
    """Phases whose file, and that of the commit they are compared with, are there."""
    agreed: int
    gate_c: int
    """Phases among the checked in which gate C was judged."""
    aborted: int
    """Phases among the checked that were cut short, without probes."""
    worst_difference: float | None
    """Of all numbers that agreed or not, relative to 1 or their size."""
    disagreements: tuple[Disagreement, ...]


def recheck(run: RunFiles) -> Recheck:
    """Compute every phase's verdict again, and compare it with the journal."""
    found = [Disagreement(phase=k, what=what) for k, what in run.damaged.items()]
    worst, checked, gate_c, aborted = [], 0, 0, 0
    for phase, (entry, committed) in enumerate(with_reference(run.entries)):
        lacks_reference = committed is not None and committed not in run.evidence
        if run.longest is None or phase not in run.evidence or lacks_reference:
            continue
        arrays = run.evidence[phase]
        reference = {} if committed is None else run.evidence[committed]
        numbers = recompute(arrays, reference, run.longest)
        checked += 1
        aborted += entry.evidence.aborted
        gates, has_commit = run.journal.header.curriculum.gates, committed is not None
        gate_c += gates.preservation and has_commit
        whats, differences = _compare_numbers(numbers, entry)
        whats += _compare_verdict(numbers, entry, run, has_commit)
        worst += differences
        if whats:
            found.append(Disagreement(phase=phase, what="; ".join(whats)))
    wrong = {d.phase for d in found}
    return Recheck(
        phases=len(run.entries),
        checked=checked,
        agreed=checked - len(wrong - set(run.damaged)),
        gate_c=gate_c,
        aborted=aborted,
        worst_difference=max(worst, default=None),
        disagreements=tuple(sorted(found, key=lambda d: d.phase)),
    )


def recompute(
    arrays: Arrays, reference: Arrays, longest: int
) -> dict[str, float | None]:
    """Take a phase's numbers from its episodes, under the journal's names.

    Args:
        arrays: The phase's file.
        reference: The file of the commit it is compared with; empty before the first.
        longest: Control steps of the longest episode.
    """
    length = finite_mean(arrays.get("window_length"))
    numbers: dict[str, float | None] = {
        "length": None if length is None else length / longest,
        "tracking_error": finite_mean(arrays.get("window_error")),
        "episodes": float(len(arrays.get("window_length", ()))),
    }
    for probe in ("checkpoint", "candidate", "anchor"):
        for what in ("error", "return"):
            numbers[f"{probe}_{what}"] = finite_mean(arrays.get(f"{probe}_{what}"))
    for what in ("error", "return"):
        # A phase cut short was not probed, and has no reference on record either.
        compared = f"checkpoint_{what}" in arrays
        own = reference.get(f"candidate_{what}") if compared else None
        numbers[f"reference_{what}"] = finite_mean(own)
    return numbers


def passes_gate_c(error: Any, value: Any, e: Any, r: Any, gates: GateCfg) -> np.ndarray:
    """Compare errors and returns with a reference's `e` and `r`; NaN passes nothing."""
    near = error <= (1.0 + gates.error_margin) * e + gates.error_slack
    return np.asarray(near & (value >= r - gates.return_margin * np.abs(r)))


def with_reference(entries: Iterable[Entry]) -> Iterator[tuple[Entry, int | None]]:
    """Yield every phase with that of the commit it is compared with, if there is one."""
    committed = None
    for phase, entry in enumerate(entries):
        yield entry, committed
        if entry.decision.action == "commit":
            committed = phase


def _compare_numbers(
    numbers: dict[str, float | None], entry: Entry
) -> tuple[list[str], list[float]]:
    """Return what differs, in words, and by how much everything does."""
    whats, differences = [], []
    for name, ours in numbers.items():
        theirs = getattr(entry.evidence, name)
        if ours is None or theirs is None:
            if ours is not theirs:
                whats.append(
                    f"{name} is {_show(theirs)}, its episodes say {_show(ours)}"
                )
            continue
        differences.append(abs(ours - theirs) / max(1.0, abs(theirs)))
        if differences[-1] > TOLERANCE:
            whats.append(f"{name} is {_show(theirs)}, its episodes say {_show(ours)}")
    return whats, differences


def _compare_verdict(
    numbers: dict[str, float | None], entry: Entry, run: RunFiles, has_commit: bool
) -> list[str]:
    cfg = run.journal.header.curriculum
    x = {k: np.nan if value is None else value for k, value in numbers.items()}
    gates = cfg.gates
    feasible = not entry.evidence.aborted and bool(
        x["length"] >= gates.min_length and x["tracking_error"] <= gates.max_error
    )
    preserved = None
    if gates.preservation and has_commit:
        now = x["checkpoint_error"], x["checkpoint_return"]
        then = x["reference_error"], x["reference_return"]
        preserved = bool(passes_gate_c(*now, *then, gates))
    passed = feasible and preserved is not False
    action = "commit"
    if not passed and entry.proposal.kind != "clock":
        failed = "rollback" if cfg.rollback else "commit"
        action = "hold" if entry.proposal.kind == "baseline" else failed
    verdict, words = entry.decision.verdict, ("failed", "passed")
    whats = []
    if feasible != verdict.feasible:
        whats.append(f"gate L {words[verdict.feasible]}, recomputed {words[feasible]}")
    if preserved is not verdict.preserved:
        was, now = (
            "not judged" if p is None else words[p]
            for p in (verdict.preserved, preserved)
        )
        whats.append(f"gate C {was}, recomputed {now}")
    if action != entry.decision.action:
        whats.append(f"{entry.decision.action} should be {action}")
    return whats


def finite_mean(values: np.ndarray | None) -> float | None:
    """Return the mean; None for none, and where it is not finite: no measurement."""
    if values is None or len(values) == 0:
        return None
    mean = float(np.mean(values))
    return mean if np.isfinite(mean) else None


def _show(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.6g}"
