"""Evaluations as tables for the terminal."""

from collections.abc import Mapping, Sequence

import numpy as np
from rich import box
from rich.table import Table

from horizon_rl.evaluation.evaluate import Evaluation
from horizon_rl.evaluation.explain import Factor, Failure
from horizon_rl.evaluation.results import success_table, summaries
from horizon_rl.evaluation.statistics import (
    Estimate,
    improvement_probability,
    interquartile_mean,
    paired_difference,
    spread_by_column,
)
from horizon_rl.evaluation.suite import Suite

Methods = Mapping[str, Sequence[Evaluation]]
"""Evaluations by method, one for each of its training seeds."""


def one_policy(
    evaluation: Evaluation, stand: Evaluation | None, impossible: Mapping[str, float]
) -> Table:
    """Lay out everything about one policy, a row per column of the suite."""
    table = _table(f"{evaluation.policy.name} in {_title(evaluation.suite)}")
    table.add_column("column", no_wrap=True)
    for heading in (
        *("success %", "95 %", "stand", "impossible", "length %"),
        *("error\nm/s", "yaw error\nrad/s", "falls %\ntrunk tilt"),
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    floor = summaries(stand) if stand else {}
    for name, summary in summaries(evaluation).items():
        falls = [f"{100.0 * share:.0f}" for share in summary.falls.values()]
        broken = f" ({falls[2]} unhealthy)" if summary.falls["unhealthy"] else ""
        table.add_row(
            name,
            f"[bold]{100.0 * summary.success:.1f}[/]",
            f"{100.0 * summary.interval.low:.0f}..{100.0 * summary.interval.high:.0f}",
            _percent(floor[name].success if name in floor else None),
            _percent(impossible.get(name)),
            f"{100.0 * summary.length:.1f}",
            f"{summary.tracking_error:.3f}",
            f"{summary.yaw_error:.3f}",
            f"{falls[0]:>3} {falls[1]:>3}{broken}",
        )
    return table


def side_by_side(
    methods: Methods, stand: Evaluation | None, impossible: Mapping[str, float]
) -> Table:
    """Lay out success of several policies, a row each; seeds of a method are one row."""
    first = next(iter(methods.values()))[0]
    seeded = any(len(seeds) > 1 for seeds in methods.values())
    spread = ", mean ± s.d. over training seeds" if seeded else ""
    table = _table(f"Success, %, in {_title(first.suite)}{spread}")
    table.add_column("policy", no_wrap=True)
    for name in first.columns:
        table.add_column(name.replace("-", "\n"), justify="right", no_wrap=True)
    for name, seeds in methods.items():
        table.add_row(name, *map(str, spread_by_column(_scores(seeds))))
    table.add_section()
    if stand:
        shares = (_percent(s.success) for s in summaries(stand).values())
        table.add_row("stand", *shares, style="dim")
    cells = (_percent(impossible.get(name)) for name in first.columns)
    table.add_row("impossible", *cells, style="dim")
    return table


def comparison(methods: Methods) -> Table:
    """Compare every method with the first, the training seed being the unit."""
    (reference, ours), *others = methods.items()
    suite = ours[0].suite
    table = _table(f"Against {reference}, over the columns of {_title(suite)}")
    table.add_column("method", no_wrap=True)
    for heading in (
        *("seeds", "IQM %", f"P(better than\n{reference})"),
        "difference, points\n(all scenarios)",
    ):
        table.add_column(heading, justify="right")
    iqm = interquartile_mean(_scores(ours), _rng(), whole_seeds=True)
    table.add_row(reference, str(len(ours)), _estimate(iqm), "", "")
    for name, seeds in others:
        x, y = _scores(seeds), _scores(ours)
        iqm = interquartile_mean(x, _rng(), whole_seeds=True)
        better = improvement_probability(x, y, _rng(), whole_seeds=True)
        difference = paired_difference(_wins(seeds), _wins(ours), _rng())
        interval = difference.interval
        table.add_row(
            name,
            str(len(seeds)),
            _estimate(iqm),
            _estimate(better),
            f"{100 * difference.value:+.1f} [{100 * interval.low:+.1f}, "
            f"{100 * interval.high:+.1f}] by {difference.unit}",
        )
    return table


def factors_table(column: str, factors: Sequence[Factor], count: int = 12) -> Table:
    """Lay out success by bins of each factor, the most telling first."""
    table = _table(f"Success, %, in {column} by value (low to high)")
    table.add_column("parameter", no_wrap=True)
    table.add_column("from", justify="right")
    table.add_column("to", justify="right")
    table.add_column("success in equal stretches", no_wrap=True)
    table.add_column("failures lie", no_wrap=True)
    for factor in factors[:count]:
        unit = f", {factor.unit}" if factor.unit else ""
        shares = (f"{100.0 * b.success:3.0f}" for b in factor.bins)
        table.add_row(
            f"{factor.name}{unit}",
            f"{factor.values.min():.3g}",
            f"{factor.values.max():.3g}",
            " ".join(shares),
            _where(factor),
        )
    return table


def failures_table(suite: Suite, column: str, failures: Sequence[Failure]) -> Table:
    """Lay out the worst scenarios, with what it takes to see them again."""
    table = _table(
        f"Worst scenarios of {column} (suite {suite.name}, seed {suite.seed})"
    )
    names = list(failures[0].values) if failures else []
    headings = ("scenario", "steps", "error m/s", "fell by", *names)
    for heading in headings:
        table.add_column(heading, justify="right")
    for failure in failures:
        table.add_row(
            str(failure.scenario),
            str(failure.length),
            f"{failure.tracking_error:.2f}",
            failure.cause,
            *(f"{value:.3g}" for value in failure.values.values()),
        )
    return table


def _where(factor: Factor) -> str:
    if factor.separation is None:
        return "-"
    side = "high" if factor.separation > 0.5 else "low"
    return f"{side} ({max(factor.separation, 1.0 - factor.separation):.2f})"


def _scores(seeds: Sequence[Evaluation]) -> np.ndarray:
    return np.stack([success_table(seed).mean(axis=1) for seed in seeds])


def _wins(seeds: Sequence[Evaluation]) -> np.ndarray:
    return np.stack([success_table(seed).ravel() for seed in seeds])


def _estimate(estimate: Estimate) -> str:
    value, interval = f"{100.0 * estimate.value:.1f}", estimate.interval
    if interval is None:
        return value
    return f"{value} [{100.0 * interval.low:.1f}, {100.0 * interval.high:.1f}]"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100.0 * share:.1f}"


def _title(suite: Suite) -> str:
    severity = "" if suite.severity is None else f" at severity {suite.severity:g}"
    return f"{suite.name}{severity}, suite {suite.digest[:12]}"


def _rng() -> np.random.Generator:
    """Resample alike whatever else is printed."""
    return np.random.default_rng(0)


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
