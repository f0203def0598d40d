"""Verdicts once more, from the episodes on file and plain numpy.

The journal's replay derives decisions from its own numbers. Here the numbers themselves
are taken from the episodes again, and the gates are written out a second time: none
of the code that judged the run is used.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from horizon_rl.curriculum import CurriculumCfg, Entry, GateCfg
from horizon_rl.runs.read import Arrays, RunFiles

Numbers = dict[str, float | None]
"""Of a phase, by the names of `Evidence`; None where nothing was measured."""
TOLERANCE = 1e-6
"""Allowed difference of a number, relative to 1 or its size: files hold float32."""


@dataclass(frozen=True, kw_only=True)
class Disagreement:
    """A phase whose record does not follow from its episodes."""

    phase: int
    what: str


@dataclass(frozen=True, kw_only=True)
class Recheck:
    """A run's verdicts computed again."""

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
    cfg = run.journal.header.curriculum
    wrong: dict[int, str] = {}
    differences: list[float] = []
    checked = gate_c = aborted = 0
    for phase, (entry, committed) in enumerate(with_reference(run.entries)):
        has_commit = committed is not None
        arrays = run.evidence.get(phase)
        reference = run.evidence.get(committed) if has_commit else {}
        if run.longest is None or arrays is None or reference is None:
            continue
        numbers = recompute(arrays, reference, run.longest)
        checked += 1
        aborted += entry.evidence.aborted
        gate_c += cfg.gates.preservation and has_commit
        whats = _compare_numbers(numbers, entry, differences)
        whats += _compare_verdict(numbers, entry, cfg, has_commit)
        if whats:
            wrong[phase] = "; ".join(whats)
    return Recheck(
        phases=len(run.entries),
        checked=checked,
        agreed=checked - len(wrong),
        gate_c=gate_c,
        aborted=aborted,
        worst_difference=max(differences, default=None),
        disagreements=tuple(
            Disagreement(phase=phase, what=what)
            for phase, what in sorted({**run.damaged, **wrong}.items())
        ),
    )


def recompute(arrays: Arrays, reference: Arrays, longest: int) -> Numbers:
    """Take a phase's numbers from its episodes, under the journal's names.

    Args:
        arrays: The phase's file.
        reference: The file of the commit it is compared with; empty before the first.
        longest: Control steps of the longest episode.
    """
    length = finite_mean(arrays.get("window_length"))
    numbers: Numbers = {
        "length": None if length is None else length / longest,
        "tracking_error": finite_mean(arrays.get("window_error")),
        "episodes": float(len(arrays.get("window_length", ()))),
    }
    for what in ("error", "return"):
        for probe in ("checkpoint", "candidate", "anchor"):
            numbers[f"{probe}_{what}"] = finite_mean(arrays.get(f"{probe}_{what}"))
        # A phase cut short was not probed, and has no reference on record either.
        compared = f"checkpoint_{what}" in arrays
        own = arrays.get(f"reference_{what}", reference.get(f"candidate_{what}"))
        own = own if compared else None
        numbers[f"reference_{what}"] = finite_mean(own)
    return numbers


def passes_gate_c(now: np.ndarray, then: np.ndarray, gates: GateCfg) -> np.ndarray:
    """Compare (error, return) [..., 2] with a reference's; NaN passes nothing."""
    (error, value), (e, r) = np.moveaxis(now, -1, 0), np.moveaxis(then, -1, 0)
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
    numbers: Numbers, entry: Entry, differences: list[float]
) -> list[str]:
    """Return what differs, in words, and add by how much every number does."""
    whats = []
    for name, ours in numbers.items():
        theirs = getattr(entry.evidence, name)
        agree = ours is theirs
        if ours is not None and theirs is not None:
            differences.append(abs(ours - theirs) / max(1.0, abs(theirs)))
            agree = differences[-1] <= TOLERANCE
        if not agree:
            was, now = (
                "not measured" if x is None else f"{x:.6g}" for x in (theirs, ours)
            )
            whats.append(f"{name} is {was}, its episodes say {now}")
    return whats


def _compare_verdict(
    numbers: Numbers, entry: Entry, cfg: CurriculumCfg, has_commit: bool
) -> list[str]:
    """Judge the numbers by the gates, and return in words what was judged otherwise."""
    x = {k: np.nan if value is None else value for k, value in numbers.items()}
    gates = cfg.gates
    feasible = not entry.evidence.aborted and bool(
        x["length"] >= gates.min_length and x["tracking_error"] <= gates.max_error
    )
    preserved = None
    if gates.preservation and has_commit:
        now = np.array([x["checkpoint_error"], x["checkpoint_return"]])
        then = np.array([x["reference_error"], x["reference_return"]])
        preserved = bool(passes_gate_c(now, then, gates))
    action = "commit"
    if not (feasible and preserved is not False) and entry.proposal.kind != "clock":
        failed = "rollback" if cfg.rollback else "commit"
        action = "hold" if entry.proposal.kind == "baseline" else failed
    verdict = entry.decision.verdict
    words = {None: "not judged", False: "failed", True: "passed"}
    compared = (
        ("gate L", words[verdict.feasible], words[feasible]),
        ("gate C", words[verdict.preserved], words[preserved]),
        ("decision", entry.decision.action, action),
    )
    return [f"{x} {was}, recomputed {now}" for x, was, now in compared if was != now]


def finite_mean(values: np.ndarray | None) -> float | None:
    """Return the mean; None for none, and where it is not finite: no measurement."""
    if values is None or len(values) == 0:
        return None
    mean = float(np.mean(values))
    return mean if np.isfinite(mean) else None
