"""Evaluations as tables for the terminal."""

from collections.abc import Mapping, Sequence
from textwrap import wrap

import numpy as np
from rich import box
from rich.markup import escape
from rich.table import Table

from horizon_rl.evaluation.evaluate import Evaluation
from horizon_rl.evaluation.explain import NUM_BINS, Factor, Failure
from horizon_rl.evaluation.results import success_table, summaries
from horizon_rl.evaluation.statistics import (
    Estimate,
    improvement_probability,
    interquartile_mean,
    paired_difference,
    spread_by_column,
)
from horizon_rl.evaluation.suite import Suite

TELLING = 0.001
"""Probability of chance below which a factor is shown: some 30 are looked at."""

Methods = Mapping[str, Sequence[Evaluation]]
"""Evaluations by method, one for each of its training seeds."""


def one_policy(
    evaluation: Evaluation, stand: Evaluation | None, impossible: Mapping[str, float]
) -> Table:
    """Lay out everything about one policy, a row per column of the suite."""
    table = _table(f"{evaluation.policy.name} in {_title(evaluation.suite)}")
    table.padding = 0  # Ten columns: every space counts.
    table.add_column("column", overflow="fold")
    for heading in (
        *("success", "95 %", "stand", "impos-\nsible", "length"),
        *("error\nm/s", "yaw\nrad/s", "trunk\ndown", "tilt"),
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    floor, broken = summaries(stand) if stand else {}, 0
    for name, summary in summaries(evaluation).items():
        table.add_row(
            _folded(name),
            f"[bold]{100.0 * summary.success:.1f}[/]",
            f"{100.0 * summary.interval.low:.0f}..{100.0 * summary.interval.high:.0f}",
            _percent(floor[name].success if name in floor else None),
            _percent(impossible.get(name)),
            f"{100.0 * summary.length:.0f}",
            f"{summary.tracking_error:.3f}",
            f"{summary.yaw_error:.3f}",
            f"{100.0 * summary.falls['trunk']:.0f}",
            f"{100.0 * summary.falls['tilt']:.0f}",
        )
        broken += round(summary.falls["unhealthy"] * summary.episodes)
    table.caption = "Shares in %."
    if broken:
        table.caption += f" In {broken} episodes the physics broke down."
    return table


def side_by_side(
    methods: Methods, stand: Evaluation | None, impossible: Mapping[str, float]
) -> Table:
    """Lay out success of several policies, one for each method's seeds together."""
    first = next(iter(methods.values()))[0]
    seeded = any(len(seeds) > 1 for seeds in methods.values())
    spread = ", mean ± s.d. over training seeds" if seeded else ""
    table = _table(f"Success, %, in {_title(first.suite)}{spread}")
    table.add_column("column")
    for name in methods:
        table.add_column(escape(name), justify="right", overflow="fold")
    if stand:
        table.add_column("stand", justify="right", style="dim", no_wrap=True)
    if impossible:
        table.add_column("impossible", justify="right", style="dim", no_wrap=True)
    spreads = [spread_by_column(_scores(seeds)) for seeds in methods.values()]
    floor = summaries(stand) if stand else {}
    for name, *cells in zip(first.columns, *spreads, strict=True):
        standing = [_percent(floor[name].success)] if stand else []
        bound = [_percent(impossible.get(name))] if impossible else []
        rest = *standing, *bound
        table.add_row(_folded(name), *map(str, cells), *rest)
    return table


def comparison(methods: Methods) -> Table:
    """Compare every method with the first, the training seed being the unit."""
    (reference, ours), *others = methods.items()
    suite = ours[0].suite
    table = _table(f"Against {reference}, over the columns of {_title(suite)}")
    table.add_column("method", overflow="fold")
    for heading in (
        *("seeds", "IQM, %", "P(better), %"),
        *("difference,\npoints", "by"),
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    iqm = interquartile_mean(_scores(ours), _rng(), whole_seeds=True)
    table.add_row(escape(reference), str(len(ours)), _estimate(iqm))
    for name, seeds in others:
        x, y = _scores(seeds), _scores(ours)
        iqm = interquartile_mean(x, _rng(), whole_seeds=True)
        better = improvement_probability(x, y, _rng(), whole_seeds=True)
        difference = paired_difference(_wins(seeds), _wins(ours), _rng())
        interval = difference.interval
        table.add_row(
            escape(name),
            str(len(seeds)),
            _estimate(iqm),
            _estimate(better),
            f"{100 * difference.value:+.1f} [{100 * interval.low:+.1f}, "
            f"{100 * interval.high:+.1f}]",
            difference.unit,
        )
    return table


def factors_table(column: str, factors: Sequence[Factor]) -> Table:
    """Lay out success by bins of each telling factor, at least the first three."""
    telling = [f for f in factors if f.chance < TELLING]
    table = _table(f"Success, %, in {column}, by value in equal steps from low to high")
    table.add_column("parameter", overflow="fold")
    table.add_column("from", justify="right")
    table.add_column("to", justify="right")
    table.add_column("success %", no_wrap=True)
    table.add_column("failures\nlie", no_wrap=True)
    rest = len(factors) - len(telling)
    table.caption = f"{rest} other quantities tell nothing (p >= {TELLING:g})."
    if not telling:
        table.caption = f"Even these tell nothing (p >= {TELLING:g})."
    for factor in telling or factors[:3]:
        name = f"{factor.name}, {factor.unit}" if factor.unit else factor.name
        table.add_row(
            # Beside eight shares a long name would not fit.
            name if len(name) <= 15 else name.replace(".", ".\n"),
            f"{factor.values.min():.3g}",
            f"{factor.values.max():.3g}",
            _shares(factor),
            _where(factor),
        )
    return table


def failures_table(suite: Suite, column: str, failures: Sequence[Failure]) -> Table:
    """Lay out the worst scenarios, with what it takes to see them again."""
    table = _table(
        f"Worst scenarios of {column} (suite {suite.name}, seed {suite.seed})"
    )
    names = list(failures[0].values) if failures else []
    headings = ("scenario", "steps", "error\nm/s", "fell\nby", *names)
    for heading in headings:
        # Three long names of parameters side by side would not fit.
        heading = heading.replace(".", ".\n")
        table.add_column(heading, justify="right", overflow="fold")
    for failure in failures:
        table.add_row(
            str(failure.scenario),
            str(failure.length),
            f"{failure.tracking_error:.2f}",
            failure.cause,
            *(f"{value:.3g}" for value in failure.values.values()),
        )
    return table


def _shares(factor: Factor) -> str:
    """Print success in every step of the range, a dash where no scenario lies."""
    low, width = factor.values.min(), np.ptp(factor.values) / NUM_BINS
    shares = ["  -"] * NUM_BINS
    for b in factor.bins:
        shares[round((b.low - low) / width)] = f"{100.0 * b.success:3.0f}"
    return " ".join(shares)


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


def _folded(name: str) -> str:
    """Break the long name of a column after a hyphen: rich knows only spaces."""
    return escape("\n".join(wrap(name, 14)))


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100.0 * share:.1f}"


def _title(suite: Suite) -> str:
    severity = "" if suite.severity is None else f" at severity {suite.severity:g}"
    return f"{suite.name}{severity}, suite {suite.digest[:12]}"


def _rng() -> np.random.Generator:
    """Resample alike whatever else is printed."""
    return np.random.default_rng(0)


def _table(title: str) -> Table:
    # Little padding: all of it should fit a terminal of 80 columns. Names are a user's
    # and may hold brackets, which would be taken for markup.
    return Table(
        title=escape(title),
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
