"""Success out of distribution beside runs: from evaluations, and against cost."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from horizon_rl.evaluation.statistics import Spread, spread
from horizon_rl.policies.shipped import model_names
from horizon_rl.runs.read import NUMBER, RunFiles, find
from horizon_rl.support.errors import InputError, blame, unknown
from horizon_rl.support.reading import read_bytes
from horizon_rl.support.records import loads

SUITE, SEVERITY, COLUMN = "ood", 0.5, "all"
"""What success out of distribution is where there is no curve."""
AT_SEVERITY = f"{SUITE} {SEVERITY:g}, {COLUMN}"
AREA = f"area of {COLUMN}"
"""Mean success over the severities of the curve: what it is where there is one."""
SHARES = (0.25, 0.5, 1.0)
"""Shares of the common cost at which success is compared."""


@dataclass(frozen=True)
class Result:
    """One policy's success out of distribution, from an evaluation's JSON."""

    policy: str
    success: float
    suite_hash: str
    measure: str = AT_SEVERITY
    """What of it was measured: `AREA` or `AT_SEVERITY`."""


@dataclass(frozen=True)
class CurvePoint:
    """Success of one checkpoint on the way, and what it had cost."""

    method: str
    seed: int
    env_steps: float
    success: float


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Success against cost of one method."""

    method: str
    seeds: dict[int, tuple[tuple[float, float], ...]]
    """(env steps, success) by seed, in order."""
    at_cost: dict[str, Spread | None]
    """Success at shares of the cost that all methods' seeds reached; None where a
    seed was not evaluated so early."""


def read_results(file: Path, name: str | None = None) -> list[Result]:
    """Read the success of every policy of a file that `horizon eval --json` wrote.

    Args:
        file: One evaluation, or a list of them; other suites and severities are passed
            over.
        name: Call all its policies so.
    """
    data = read_json(file)
    found = find_results(data if isinstance(data, list) else [data], name)
    if not found:
        raise InputError(
            f"{file}: no curve, nor success in column '{COLUMN}' of suite '{SUITE}'; "
            "accepted: what `horizon eval --curve --json FILE` writes, or with "
            f"`--severity {SEVERITY:g}`"
        )
    return found


def find_results(records: Iterable[Any], name: str | None = None) -> list[Result]:
    """Return the success of every policy among evaluations; others are passed over.

    Where there are curves, only their areas: one severity is no substitute.
    """
    found: dict[str, list[Result]] = {AREA: [], AT_SEVERITY: []}
    for record in records:
        suite = find(record, dict, "suite") or {}
        policy = find(record, str, "policy")
        area = find(record, NUMBER, "curve", COLUMN, "area")
        success = find(record, NUMBER, "columns", COLUMN, "success")
        if (suite.get("name"), suite.get("severity")) != (SUITE, SEVERITY):
            success = None
        for measure, value in ((AREA, area), (AT_SEVERITY, success)):
            if value is not None and policy is not None:
                digest = str(suite.get("hash"))
                found[measure].append(Result(name or policy, value, digest, measure))
    return found[AREA] or found[AT_SEVERITY]


def match_results(
    results: Sequence[Result], runs: Sequence[RunFiles]
) -> dict[Path, float]:
    """Give every run its success: by its path, or by its name and in the runs' order.

    Policies that are no run's are passed over, unless all are.
    """
    if len({result.suite_hash for result in results}) > 1:
        raise InputError("the results are of different suites: not to be compared")
    given: dict[tuple[Path, ...], list[float]] = {}
    for result in results:
        policy = Path(result.policy).resolve()
        # A directory that is called like a shipped policy is not meant by its name.
        shipped = result.policy in model_names()
        where = () if shipped else (policy, *policy.parents)
        named = [run.path for run in runs if run.name == result.policy]
        placed = [run.path for run in runs if run.path.resolve() in where]
        if mine := tuple(named or placed[:1]):
            given.setdefault(mine, []).append(result.success)
    if results and not given:
        names = dict.fromkeys(run.name for run in runs)
        raise InputError(f"results: {unknown('policy', results[0].policy, names)}")
    by_run: dict[Path, float] = {}
    for paths, values in given.items():
        if len(paths) != len(values) or by_run.keys() & set(paths):
            raise InputError(
                f"{', '.join(map(str, paths))}: {len(values)} result(s) of "
                f"'{results[0].measure}'; accepted: one for each run, in the same order "
                "(--cost-curve takes several)"
            )
        by_run |= dict(zip(paths, values, strict=True))
    return by_run


def read_curve(file: Path) -> list[CurvePoint]:
    """Read rows of method, seed, env_steps and success, a JSON list."""
    rows = read_json(file)
    if not isinstance(rows, list) or not rows:
        raise InputError(f"{file}: not a list of rows")
    points = []
    for i, row in enumerate(rows):
        method, seed = find(row, str, "method"), find(row, int, "seed")
        steps, success = (find(row, NUMBER, key) for key in ("env_steps", "success"))
        known = None not in (method, seed, steps, success)
        if not known or steps < 0.0 or not 0.0 <= success <= 1.0:
            raise InputError(
                f"{file}: row {i}: needs method, seed, env_steps of at least 0 and "
                "success in 0..1"
            )
        points.append(CurvePoint(method, seed, float(steps), float(success)))
    return points


def make_curves(points: Sequence[CurvePoint]) -> tuple[Curve, ...]:
    """Group points into curves, and compare these at equal cost."""
    curves: dict[str, dict[int, dict[float, float]]] = {}
    for p in points:
        line = curves.setdefault(p.method, {}).setdefault(p.seed, {})
        if line.setdefault(p.env_steps, p.success) != p.success:
            raise InputError(
                f"the curve of '{p.method}' has two successes of seed {p.seed} at "
                f"{p.env_steps:g} env steps"
            )
    common = min(max(line) for lines in curves.values() for line in lines.values())
    return tuple(
        Curve(
            method=method,
            seeds={seed: tuple(sorted(line.items())) for seed, line in lines.items()},
            at_cost={f"{x:g}": _success_at(x * common, lines.values()) for x in SHARES},
        )
        for method, lines in curves.items()
    )


def _success_at(steps: float, lines: Iterable[Mapping[float, float]]) -> Spread | None:
    """Interpolate between checkpoints; never before the first."""
    if any(steps < min(line) for line in lines):
        return None
    curves = [np.array(sorted(line.items())).T for line in lines]
    return spread(np.interp(steps, *curve) for curve in curves)


def read_json(file: Path) -> Any:
    with blame(f"cannot read {file}", OSError), blame(str(file)):
        return loads(read_bytes(file))
