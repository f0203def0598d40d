"""Success against severity as a table and as a figure, a line for each method."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from horizon_rl.evaluation.control import CONTROL
from horizon_rl.evaluation.curve import SEVERITIES, area_by_scenario
from horizon_rl.evaluation.evaluate import Evaluation
from horizon_rl.evaluation.statistics import paired_difference, share_interval, spread
from horizon_rl.show.evaluation_tables import Methods
from horizon_rl.show.numbers import show_difference, show_interval, show_percent
from horizon_rl.show.plotting import add_legend, name_styles, new_figure
from horizon_rl.show.scores import NAME_WIDTH, describe_suite
from horizon_rl.show.table import Cell, Table


def curve_table(methods: Methods) -> Table:
    """Lay out success at every severity, its area, and differences to the first method."""
    first = next(iter(methods.values()))
    suite, several = first[0].suite, len(methods) > 1
    rows: list[tuple[str | Cell, ...]] = []
    for curve, columns in suite.curves.items():
        reference = _areas(first, columns)
        rows += [()] * bool(rows) + [(Cell(curve, "bold"),)] if several else []
        for name, seeds in methods.items():
            areas = _areas(seeds, columns)
            area = str(spread(areas.mean(axis=1)))
            if len(seeds) == 1:
                area += f" ({show_interval(share_interval(areas[0]))})"
            row = (
                name if several else curve,
                *map(show_percent, _success(seeds, columns).mean(axis=0)),
                Cell(area, "bold"),
            )
            if several and seeds is not first:
                found = paired_difference(areas, reference, np.random.default_rng(0))
                row += (show_difference(found),)
            rows.append(row)
    where = describe_suite(suite.name, suite.severity, suite.draw)
    notes = ["Area: mean of the four severities; 0 is the control, at the baseline."]
    if several:
        notes += [
            "Difference: of the area to the first, in points, with its 95 % interval: by",
            "training seed where both have several, else by scenario.",
        ]
    return Table(
        f"Success, %, against severity, {where}, suite {suite.digest[:12]}",
        (
            *("", "0", *(f"{severity:g}" for severity in SEVERITIES), "area"),
            *["difference"] * several,
        ),
        tuple(rows),
        tuple(notes),
        name_width=NAME_WIDTH,
    )


def curve_figure(methods: Methods) -> Any:
    """Draw success against severity, a panel per curve; bands are the seeds' range."""
    curves = next(iter(methods.values()))[0].suite.curves
    colours, markers = name_styles(methods)
    figure, panels = new_figure(
        0.8 + 3.6 * len(curves), 3.6, columns=len(curves), sharey=True
    )
    where = (0.0, *SEVERITIES)
    for panel, (curve, columns) in zip(panels, curves.items(), strict=True):
        for name, seeds in methods.items():
            success = 100.0 * _success(seeds, columns)
            style = {"color": colours[name], "marker": markers[name], "ms": 5}
            # One legend for all panels.
            label = name if panel is panels[0] else None
            panel.plot(where, success.mean(axis=0), label=label, lw=1.5, **style)
            low, high = success.min(axis=0), success.max(axis=0)
            panel.fill_between(where, low, high, color=colours[name], alpha=0.15, lw=0)
        panel.set(title=curve, xlabel="severity", xticks=where, ylim=(-2, 102))
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("success, %")
    add_legend(figure, len(methods))
    return figure


def _areas(seeds: Sequence[Evaluation], columns: Sequence[str]) -> np.ndarray:
    """Return areas, [seeds, scenarios]."""
    return np.stack([area_by_scenario(seed, columns) for seed in seeds])


def _success(seeds: Sequence[Evaluation], columns: Sequence[str]) -> np.ndarray:
    """Return success at severity 0 and at the curve's, [seeds, severities]."""
    names = (CONTROL, *columns)
    return np.array([[seed.won(name).mean() for name in names] for seed in seeds])
