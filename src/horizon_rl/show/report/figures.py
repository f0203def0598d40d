"""Figures of a report that a study has not: gates, suites, levels and steps by cost."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from horizon_rl.curriculum import Entry, Method
from horizon_rl.curriculum.gates import Check, feasibility_checks, preservation_checks
from horizon_rl.evaluation.studies.diagnostic import difficulties
from horizon_rl.evaluation.studies.recheck import gates_in_force
from horizon_rl.runs.read import RunFiles
from horizon_rl.runs.summary import RunSummary
from horizon_rl.show.actions import ACTIONS
from horizon_rl.show.plotting import (
    ALL_STEPS,
    FAINT,
    add_legend,
    name_styles,
    new_figure,
)
from horizon_rl.show.scores import SuiteScores

ENOUGH = 1.6
"""Values beyond this multiple of a limit are drawn at the edge: they would flatten the rest."""


def gate_figure(entries: Sequence[Entry], method: Method) -> Any:
    """Draw what the gates measured in every phase, and the limits they set."""
    panels = ["L: episode length", "L: error, m/s"]
    if any(e.evidence.reference_error is not None for e in entries):
        panels += ["C: error, m/s", "C: return"]
    checks = [_checks(entry, method) for entry in entries]
    height = 0.6 + 1.35 * len(panels)
    figure, axes = new_figure(9, height, len(panels), sharex=True)
    for i, (ax, name) in enumerate(zip(axes, panels, strict=True)):
        _draw_gate(ax, entries, [row[i] for row in checks])
        ax.set_ylabel(name, fontsize=9)
        ax.grid(axis="y", lw=0.4, alpha=0.5)
    axes[-1].set_xlabel("phase")
    axes[-1].set_xlim(-0.7, max(len(entries) - 0.3, 1.0))
    for action, (*_, marker, colour) in ACTIONS.items():
        if any(e.decision.action == action for e in entries):
            axes[0].plot([], [], marker, color=colour, label=action)
    axes[0].plot([], [], color=FAINT, lw=1.5, label="limit")
    add_legend(figure, 5)
    return figure


def _checks(entry: Entry, method: Method) -> list[Check]:
    """Return what both gates looked at; gate C has no limits where it did not judge."""
    evidence = entry.evidence
    gates = gates_in_force(method, evidence.length_se, evidence.error_se)
    kept = preservation_checks(evidence, gates)
    if entry.decision.verdict.preserved is None:
        kept = [replace(check, threshold=None) for check in kept]
    return [*feasibility_checks(evidence, gates), *kept]


def _draw_gate(ax: Any, entries: Sequence[Entry], checks: Sequence[Check]) -> None:
    phases = np.arange(len(checks))
    limits = np.array([check.threshold for check in checks], float)
    values = np.array([check.value for check in checks], float)
    actions = np.array([entry.decision.action for entry in entries])
    if not np.isnan(limits).all():
        ax.hlines(limits, phases - 0.5, phases + 0.5, color=FAINT, lw=1.5)
        values = np.minimum(values, ENOUGH * np.nanmax(limits))
    for action, (*_, marker, colour) in ACTIONS.items():
        mine = (actions == action) & ~np.isnan(values)
        size = 8 if marker == "*" else 5
        if mine.any():
            ax.plot(phases[mine], values[mine], marker, color=colour, ms=size)


def suite_figure(scores: SuiteScores, names: Sequence[str]) -> Any:
    """Draw success by column, a mark for each policy; `names` gives the colours."""
    colours, markers = name_styles(names)
    policies, columns = list(scores.policies), scores.columns
    figure, (ax,) = new_figure(6.8, 1.1 + (0.26 + 0.1 * len(policies)) * len(columns))
    rows = np.arange(len(columns), dtype=float)
    for k, column in enumerate(columns):
        if (floor := scores.about(column, "stand")) is not None:
            ax.plot((100 * floor,) * 2, (k - 0.4, k + 0.4), color=FAINT, lw=2)
    for i, policy in enumerate(policies):
        offset = 0.16 * (i - 0.5 * (len(policies) - 1))
        for k, column in enumerate(columns):
            if not (seeds := scores.of(policy, column)):
                continue
            values = [s["success"] for s in seeds]
            low, mean, high = min(values), float(np.mean(values)), max(values)
            if len(seeds) == 1 and (interval := seeds[0].get("interval")):
                low, high = interval["low"], interval["high"]
            y = rows[k] + offset
            ax.plot((100 * low, 100 * high), (y, y), color=colours[policy], lw=1.2)
            ax.plot(100 * mean, y, markers[policy], color=colours[policy], ms=5)
        style = {"marker": markers[policy], "color": colours[policy], "lw": 1.2}
        ax.plot([], [], **style, ms=5, label=policy)
    if any(scores.about(column, "stand") is not None for column in columns):
        ax.plot([], [], color=FAINT, lw=2, label="stand")
    ax.set_yticks(rows, columns)
    ax.invert_yaxis()
    ax.set(xlim=(-2, 102), xlabel="success, %")
    ax.grid(axis="x", alpha=0.3)
    add_legend(figure, len(policies) + 1)
    return figure


def level_figure(runs: Sequence[RunFiles], names: Sequence[str]) -> Any:
    """Draw the mean mastered level against all env steps that were spent.

    Dotted where levels go by the clock, and nothing was mastered.
    """
    colours, _ = name_styles(names)
    figure, (ax,) = new_figure(6.8, 3.4)
    seen: set[str] = set()
    for run in runs:
        steps = [e.evidence.env_steps for e in run.entries]
        # Teachers' env steps were spent before.
        before = run.journal.state.env_steps - sum(steps)
        spent = np.cumsum([before, *steps]) / 1e6
        levels = [0.0, *difficulties(run.journal)]
        style = "-" if run.journal.header.curriculum.clock is None else ":"
        label, colour = None if run.name in seen else run.name, colours[run.name]
        ax.step(spent, levels, style, where="post", color=colour, lw=1.6, label=label)
        seen.add(run.name)
    ax.set(xlim=(0.0, None), ylim=(0.0, 1.05), xlabel=ALL_STEPS)
    ax.set_ylabel("mean mastered level")
    ax.grid(alpha=0.3)
    add_legend(figure, len(seen))
    return figure


def steps_figure(runs: Mapping[str, RunSummary]) -> Any:
    """Draw env steps by verdict, a bar for each run; the light end is in probes."""
    figure, (ax,) = new_figure(6.8, 1.2 + 0.42 * len(runs))
    for k, summary in enumerate(runs.values()):
        start = 0.0
        for action, spent in summary.by_action.items():
            probes = (spent.probe_env_steps or 0) / 1e6
            trained = spent.env_steps / 1e6 - probes
            colour = ACTIONS[action].colour
            ax.barh(k, trained, 0.6, start, color=colour, alpha=0.75)
            ax.barh(k, probes, 0.6, start + trained, color=colour, alpha=0.35)
            start += trained + probes
    for action, look in ACTIONS.items():
        if any(run.by_action[action].phases for run in runs.values()):
            ax.barh(0, 0, color=look.colour, alpha=0.75, label=look.done)
    ax.barh(0, 0, color=FAINT, alpha=0.35, label="pale: probes")
    ax.set_yticks(range(len(runs)), list(runs))
    ax.invert_yaxis()
    ax.set(xlabel="env steps, millions", axisbelow=True)
    ax.grid(axis="x", alpha=0.3)
    add_legend(figure, 4)
    return figure
