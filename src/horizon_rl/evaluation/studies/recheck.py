"""Verdicts once more, from the episodes on file and plain numpy.

The journal's replay derives decisions from its own numbers. Here the numbers themselves
are taken from the episodes again, and held against the method's thresholds by checks
that are written out a second time.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields

import numpy as np

from horizon_rl.curriculum import Entry, Evidence, GateCfg, Horizon, Method
from horizon_rl.curriculum.evidence import standard_error
from horizon_rl.runs.read import Arrays, RunFiles

Numbers = dict[str, float | None]
"""Of a phase, by the names of `Evidence` and its `probed`; None: not measured."""
FIELDS = {field.name for field in fields(Evidence)}
PROBES = ("checkpoint", "candidate", "anchor")
REFERENCE = ("reference_error", "reference_return")
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
    """Phases whose file, and those of the commits they are compared with, are there. Of
    others that have a file all but gate C is compared, and what disagrees is said."""
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
    method = run.journal.header.make_method()
    wrong: dict[int, str] = {}
    differences: list[float] = []
    anchor: Numbers | None = {}
    checked = agreed = gate_c = aborted = 0
    for phase, (entry, reference) in enumerate(with_reference(run)):
        arrays = run.evidence.get(phase)
        if run.longest is None or arrays is None:
            if _commits(entry) and not anchor and isinstance(method, Horizon):
                anchor = None  # Lost with the first commit's episodes.
            continue
        numbers = _recompute(entry, arrays, reference, run.longest)
        has_all = reference is not None and anchor is not None
        preserved = None
        if method.cfg.gates.preservation and _has_commit(run.entries[:phase], method):
            # The journal's replay has found it from the numbers on record, at least.
            preserved = entry.decision.verdict.preserved
            if has_all:
                preserved = judge_gate_c(numbers, anchor or {}, method)
        whats = _compare_numbers(numbers, entry, differences)
        whats += _compare_verdict(numbers, entry, method, preserved)
        if whats:
            wrong[phase] = "; ".join(whats)
        if has_all:
            checked += 1
            agreed += not whats
            aborted += entry.evidence.aborted
            gate_c += preserved is not None
        if _commits(entry) and anchor == {}:
            errors = (k for k in numbers if k.startswith("anchor_error"))
            anchor = {k: numbers[k] for k in errors if numbers[k] is not None}
    return Recheck(
        phases=len(run.entries),
        checked=checked,
        agreed=agreed,
        gate_c=gate_c,
        aborted=aborted,
        worst_difference=max(differences, default=None),
        disagreements=tuple(
            Disagreement(phase=phase, what=what)
            for phase, what in sorted({**run.damaged, **wrong}.items())
        ),
    )


def _recompute(
    entry: Entry, arrays: Arrays, reference: Arrays | None, longest: int
) -> Numbers:
    """Take a phase's numbers from its episodes, under the journal's names.

    Args:
        entry: The phase, as the journal has it.
        arrays: The phase's file.
        reference: Arrays of the commit it is compared with; empty before the first.
            None: they are gone, and its line tells. So a file that is missing hides
            nothing that was altered in the next.
        longest: Control steps of the longest episode.
    """
    window = arrays.get("window_length", np.empty(0)) / longest
    numbers: Numbers = {
        **{f"{probe}_{what}": None for probe in PROBES for what in ("error", "return")},
        "length": finite_mean(window),
        "tracking_error": finite_mean(arrays.get("window_error")),
        "length_se": standard_error(window),
        "error_se": standard_error(arrays.get("window_error", np.empty(0))),
        "episodes": float(len(window)),
    }
    # A phase cut short was not probed, and has no reference on record either.
    compared = "checkpoint_error" in arrays
    pairs = (reference or {}).items() if compared else ()
    known = {f"reference_{what}": values for what, values in pairs}
    numbers |= dict.fromkeys(REFERENCE)
    numbers |= _probe_means({**arrays, **known}, longest)
    if not entry.evidence.iterations:  # Its probe stands in for training.
        numbers["length"] = numbers.get("candidate_length")
        numbers["tracking_error"] = numbers["candidate_error"]
    if reference is None:
        numbers |= {name: getattr(entry.evidence, name) for name in REFERENCE}
    return numbers


def _probe_means(arrays: Arrays, longest: int) -> Numbers:
    """Return the means over every probe set, and of its errors by size of body."""
    means: Numbers = {}
    for key, values in arrays.items():
        probe, _, what = key.rpartition("_")
        if probe == "window" or what.startswith("size:"):
            continue
        means[key] = finite_mean(values / longest if what == "length" else values)
        masks = f"{probe}_size:"
        for name in arrays if what == "error" else ():
            if name.startswith(masks):
                of_size = values[arrays[name].astype(bool)]
                means[f"{key}:{name.removeprefix(masks)}"] = finite_mean(of_size)
    return means


def gates_in_force(
    method: Method, length_se: float | None = None, error_se: float | None = None
) -> GateCfg:
    """Return the gates as a method sets them in a phase; HORIZON's gate L is a test."""
    if isinstance(method, Horizon):
        return method.gates(length_se, error_se)
    return method.cfg.gates


def judge_gate_c(numbers: Numbers, anchor: Numbers, method: Method) -> bool:
    """Judge gate C; HORIZON's is also of every size of body, and at level 0.

    Args:
        numbers: Of the phase.
        anchor: Errors at level 0 of the first commit.
        method: What set the gates.
    """
    x = _or_nan(numbers)
    now, then = (
        np.array([x[f"{probe}_error"], x[f"{probe}_return"]])
        for probe in ("checkpoint", "reference")
    )
    passed = bool(passes_gate_c(now, then, gates_in_force(method)))
    if not isinstance(method, Horizon):
        return passed
    start, leap = "reference_error:", method.leap
    limits = {
        f"checkpoint_error:{name.removeprefix(start)}": (1.0 + leap.margin) * x[name]
        for name in numbers
        if name.startswith(start)
    }
    at_0 = _or_nan(anchor).items()
    limits |= {name: (1.0 + leap.anchor_margin) * value for name, value in at_0}
    known = (name for name in limits if numbers.get(name) is not None)
    return passed and all(x[name] <= limits[name] for name in known)


def passes_gate_c(now: np.ndarray, then: np.ndarray, gates: GateCfg) -> np.ndarray:
    """Compare (error, return) [..., 2] with a reference's; NaN passes nothing."""
    (error, value), (e, r) = np.moveaxis(now, -1, 0), np.moveaxis(then, -1, 0)
    near = error <= (1.0 + gates.error_margin) * e + gates.error_slack
    return np.asarray(near & (value >= r - gates.return_margin * np.abs(r)))


def with_reference(run: RunFiles) -> Iterator[tuple[Entry, Arrays | None]]:
    """Yield every phase with the scenarios of the commit that it is compared with.

    Empty before the first commit; None where they are not on file. A commit that was
    not measured at its levels, as a partial one, is measured as the next phase begins.
    """
    reference: Arrays | None = {}
    for phase, entry in enumerate(run.entries):
        arrays = run.evidence.get(phase)
        if arrays is not None and "reference_error" in arrays:
            reference = _of_probe(arrays, "reference")
        elif arrays is None and entry.evidence.reference_error is not None:
            reference = reference or None  # It may have been measured in this phase.
        yield entry, reference
        if _commits(entry):
            reference = None if arrays is None else _of_probe(arrays, "candidate")
            if entry.decision.levels:
                reference = {}


def _of_probe(arrays: Arrays, probe: str) -> Arrays:
    start = f"{probe}_"
    return {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}


def _commits(entry: Entry) -> bool:
    return entry.decision.action == "commit"


def _has_commit(entries: Iterable[Entry], method: Method) -> bool:
    """Tell whether there is something to preserve; HORIZON asks it of its own work."""
    any_will_do = not isinstance(method, Horizon)
    return any(_commits(e) and (e.evidence.iterations or any_will_do) for e in entries)


def _compare_numbers(
    numbers: Numbers, entry: Entry, differences: list[float]
) -> list[str]:
    """Return what differs, in words, and add by how much every number does."""
    whats, evidence = [], entry.evidence
    for name in {**numbers, **evidence.probed}:
        ours, theirs = numbers.get(name), evidence.probed.get(name)
        if name in FIELDS:
            theirs = getattr(evidence, name)
        elif name not in evidence.probed:
            continue  # Of no use to its method.
        if name in ("length_se", "error_se") and theirs is None:
            continue  # Older journals have none.
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
    numbers: Numbers, entry: Entry, method: Method, preserved: bool | None
) -> list[str]:
    """Judge the numbers by the gates, and return in words what was judged otherwise."""
    gates = gates_in_force(method, numbers["length_se"], numbers["error_se"])
    x = _or_nan(numbers)
    feasible = not entry.evidence.aborted and bool(
        x["length"] >= gates.min_length and x["tracking_error"] <= gates.max_error
    )
    action = "commit"
    decides = entry.proposal.kind not in ("clock", "other")
    if decides and not (feasible and preserved is not False):
        action = _after_failure(numbers, entry, method, preserved)
    verdict = entry.decision.verdict
    words = {None: "not judged", False: "failed", True: "passed"}
    compared = (
        ("gate L", words[verdict.feasible], words[feasible]),
        ("gate C", words[verdict.preserved], words[preserved]),
        ("decision", entry.decision.action, action),
    )
    return [f"{x} {was}, recomputed {now}" for x, was, now in compared if was != now]


def _after_failure(
    numbers: Numbers, entry: Entry, method: Method, preserved: bool | None
) -> str:
    """Return what must follow a failed phase."""
    cfg, decision = method.cfg, entry.decision
    if entry.proposal.kind == "baseline":
        return "hold"
    if not isinstance(method, Horizon):
        failed = "rollback" if cfg.restore else "retreat"
        return failed if cfg.rollback else "commit"
    # Whether to train on depends on the phases before: the journal's replay tells.
    if decision.action != "commit":
        return decision.action
    scouts = entry.proposal.scouts or {}
    kept = (name for name, levels in scouts.items() if levels == decision.levels)
    x = _or_nan(numbers)
    backed = any(
        x.get(f"{name}_length", np.nan) >= cfg.gates.min_length
        and x.get(f"{name}_error", np.nan) <= cfg.gates.max_error
        for name in kept
    )
    return "commit" if backed and preserved is not False else "rollback"


def _or_nan(numbers: Numbers) -> Mapping[str, float]:
    """Return numbers to calculate with: what was not measured passes nothing."""
    return {k: np.nan if value is None else value for k, value in numbers.items()}


def finite_mean(values: np.ndarray | None) -> float | None:
    """Return the mean; None for none, and where it is not finite: no measurement."""
    if values is None or len(values) == 0:
        return None
    mean = float(np.mean(values))
    return mean if np.isfinite(mean) else None
