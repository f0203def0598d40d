"""A study as figures: frontiers, coverage, success against cost, and the plateau."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from horizon_rl.evaluation.studies.study import Study
from horizon_rl.evaluation.success import Curve
from horizon_rl.runs.read import RunFiles
from horizon_rl.show.frontier_figure import frontier_figure
from horizon_rl.show.plotting import (
    ALL_STEPS,
    add_legend,
    name_styles,
    new_figure,
    save_figure,
)

Styles = tuple[dict[str, str], dict[str, str]]
"""Colour and marker by method."""


def draw_study(study: Study, runs: Sequence[RunFiles], folder: Path) -> list[Path]:
    """Draw what there is to draw, each as PNG and SVG; returns the PNGs."""
    figures = {}
    for run, label in zip(runs, (run.label for run in study.runs), strict=True):
        groups = run.journal.header.groups
        if run.entries and groups:
            stem = "frontiers-" + re.sub(r"[^\w.+-]+", "-", label)
            figures[stem] = frontier_figure(run.entries, groups, label)
    if any(spread for m in study.methods for spread in m.coverage.values()):
        figures["coverage"] = coverage_figure(study)
    if study.curves:
        figures["cost-curve"] = curves_figure(study.curves, method_styles(study))
    if plateau_marks(study):
        figures["plateau"] = plateau_figure(study)
    folder.mkdir(parents=True, exist_ok=True)
    return [save_figure(figure, folder / stem)[0] for stem, figure in figures.items()]


def plateau_marks(study: Study) -> list[tuple[str, float, float]]:
    """List method, best episode length and success, %, of the runs that have both."""
    return [
        (run.name, 100.0 * run.length_trends.window.best, 100.0 * run.ood_success)
        for run in study.runs
        if run.length_trends.window and run.ood_success is not None
    ]


def coverage_figure(study: Study, baseline: Mapping[str, float] | None = None) -> Any:
    """Draw bars per group, one for each method, and a dot for each of its seeds.

    A line across a group's bars is its coverage at `baseline`, if that is given.
    """
    groups = list(dict.fromkeys(group for run in study.runs for group in run.coverage))
    number = len(study.methods)
    colours, _ = method_styles(study)
    by_clock = {run.name for run in study.runs if run.by_clock}
    figure, (axes,) = new_figure(max(6.0, 1.4 + 0.28 * number * len(groups)), 3.6)
    width = 0.8 / number
    for i, method in enumerate(study.methods):
        where = np.arange(len(groups)) + (i - 0.5 * (number - 1)) * width
        spreads = [method.coverage.get(group) for group in groups]
        means = [100.0 * s.mean if s else 0.0 for s in spreads]
        sds = [100.0 * s.sd if s and s.sd is not None else np.nan for s in spreads]
        colour, is_given = colours[method.name], method.name in by_clock
        axes.bar(
            where,
            means,
            0.9 * width,
            color=colour,
            alpha=0.55,
            hatch="///" if is_given else None,
            edgecolor="white",
            label=f"{method.name} (by the clock)" if is_given else method.name,
        )
        axes.errorbar(where, means, sds, fmt="none", ecolor="black", capsize=2, lw=1)
        mine = [run for run in study.runs if run.name == method.name]
        for run in mine if len(mine) > 1 else ():
            dots = np.array([run.coverage.get(group) for group in groups], float)
            axes.plot(where, 100.0 * dots, "o", color=colour, ms=3.5)
    for k, group in enumerate(groups):
        if baseline and group in baseline:
            level = 100.0 * baseline[group]
            axes.plot((k - 0.45, k + 0.45), (level, level), color="black", lw=1.5)
    if baseline:
        axes.plot([], [], color="black", lw=1.5, label="baseline")
    axes.set_xticks(range(len(groups)), groups)
    axes.set(ylim=(0, 105), ylabel="coverage, %", axisbelow=True)
    axes.grid(axis="y", alpha=0.3)
    add_legend(figure, number + bool(baseline))
    return figure


def curves_figure(
    curves: Sequence[Curve], styles: Styles, measure: str = "success"
) -> Any:
    """Draw a method's mean where all its seeds were evaluated, and their range."""
    figure, (axes,) = new_figure(6.5, 4.0)
    colours, markers = styles
    for curve in curves:
        colour, marker = colours[curve.method], markers[curve.method]
        bold = {"color": colour, "marker": marker, "ms": 5, "lw": 2}
        lines = [np.array(line).T for line in curve.seeds.values()]
        low, high = max(x[0] for x, _ in lines), min(x[-1] for x, _ in lines)
        grid = np.unique(np.concatenate([x for x, _ in lines]))
        grid = grid[(grid >= low) & (grid <= high)]
        if len(lines) > 1 and len(grid) > 0:
            for x, y in lines:
                axes.plot(x / 1e6, 100.0 * y, color=colour, lw=0.7, alpha=0.5)
            table = np.stack([np.interp(grid, x, y) for x, y in lines])
            bounds = 100.0 * table.min(axis=0), 100.0 * table.max(axis=0)
            axes.fill_between(grid / 1e6, *bounds, color=colour, alpha=0.15, lw=0)
            lines = [(grid, table.mean(axis=0))]
        for k, (x, y) in enumerate(lines):
            label = curve.method if k == 0 else None
            axes.plot(x / 1e6, 100.0 * y, **bold, label=label)
    axes.set(xlim=(0.0, None), ylim=(0.0, None), xlabel=ALL_STEPS)
    axes.set_ylabel(f"{measure}, %")
    axes.grid(alpha=0.3)
    add_legend(figure, len(curves))
    return figure


def plateau_figure(study: Study) -> Any:
    """Draw one mark per run: what training saw against success beyond it."""
    figure, (axes,) = new_figure(6.0, 4.0)
    colours, markers = method_styles(study)
    for method in study.methods:
        marks = [mark for name, *mark in plateau_marks(study) if name == method.name]
        style = {"ms": 8, "mec": "white", "alpha": 0.9, "color": colours[method.name]}
        if marks:
            marker = markers[method.name]
            axes.plot(*np.array(marks).T, marker, **style, label=method.name)
    axes.margins(0.08)
    axes.set_xlabel(
        "best episode length in the run's own ranges, % of the longest\n"
        "(gate L's window, moving mean over 5 % of the run)"
    )
    axes.set_ylabel(f"success, {study.success_measure}, %")
    axes.grid(alpha=0.3)
    add_legend(figure, len(study.methods))
    return figure


def method_styles(study: Study) -> Styles:
    """Return colour and marker of every method: the same in all figures."""
    return name_styles(
        [m.name for m in study.methods] + [c.method for c in study.curves]
    )
