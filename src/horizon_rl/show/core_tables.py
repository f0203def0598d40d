"""The pairwise search as tables and as a matrix."""

from typing import Any

from horizon_rl.domains.catalogue import CORE_GROUPS
from horizon_rl.grid.core import HARD_BELOW, CoreSearch, GroupFinding
from horizon_rl.show.numbers import show_spread
from horizon_rl.show.plotting import COLOURS, FAINT, new_figure
from horizon_rl.show.table import Cell, Table, tabulate
from horizon_rl.support.words import counted

RULE = (
    f"Hard: under {HARD_BELOW:.0%} in its own column in the full run. Core: hard, with "
    "a partner where F + O > 0."
)


def core_tables(found: CoreSearch) -> list[Table]:
    """Lay out what is selected and why, then every pair."""
    seeds = counted(len(found.seeds), "seed")
    where = f"severity {found.severity:g} ({found.draw}), {seeds}"
    notes = [RULE, f"Selected: {', '.join(found.core) or 'none'}."]
    if set(CORE_GROUPS) <= {finding.group for finding in found.groups}:
        notes.append(f"The paper's core: {', '.join(CORE_GROUPS)}.")
    if found.core and not any(finding.core_coverage for finding in found.groups):
        notes.append("No finished run of the selected groups with every seed.")
    groups = tabulate(
        f"Groups, success in the own column, %, at {where}",
        found.groups,
        (
            ("group", lambda g: Cell(g.group, "bold" if g.is_core else "")),
            ("expert", lambda g: show_spread(g.expert_success, 100.0, 1)),
            ("full run", lambda g: show_spread(g.full_success, 100.0, 1)),
            ("expert's coverage", lambda g: show_spread(g.expert_coverage, 100.0, 1)),
            ("full run's coverage", lambda g: show_spread(g.full_coverage, 100.0, 1)),
            ("core run's coverage", _core_coverage),
            ("best partner", lambda g: g.partner),
            ("F + O", lambda g: f"{g.gain:+.1f}"),
            ("", _verdict),
        ),
        notes,
        align="lrrrrrlrl",
    )
    pairs = tabulate(
        f"Pairs at {where}",
        sorted(found.pairs, key=lambda pair: -pair.gain),
        (
            ("pair", lambda p: " + ".join(p.groups)),
            ("both shifted, %", lambda p: show_spread(p.success, 100.0, 1)),
            ("F", lambda p: _points(p.frontier_change)),
            ("O", lambda p: _points(p.transfer)),
            ("F + O", lambda p: f"{p.gain:+.1f}"),
        ),
        (
            "F: coverage in the pair run less the expert's, points, mean over the two groups.",
            "O: success in a group's own column, pair run less expert, points, likewise.",
        ),
    )
    return [groups, pairs]


def core_figure(found: CoreSearch) -> Any:
    """Draw the matrix: success with both groups shifted, and below it F and O."""
    names = [finding.group for finding in found.groups]
    size = len(names)
    figure, (axes,) = new_figure(1.6 + 1.15 * size, 1.2 + 0.85 * size)
    cells = [[float("nan")] * size for _ in names]
    for k, group in enumerate(found.groups):
        cells[k][k] = 100.0 * group.expert_success.mean
        _write(axes, k, k, f"{cells[k][k]:.1f}", cells[k][k], "bold")
    for pair in found.pairs:
        column, row = sorted(map(names.index, pair.groups))
        cells[row][column] = value = 100.0 * pair.success.mean
        changes = pair.frontier_change.mean, pair.transfer.mean
        text = "{:.1f}\nF {:+.1f}\nO {:+.1f}".format(value, *changes)
        _write(axes, column, row, text, value)
    image = axes.imshow(cells, cmap="cividis", vmin=0.0, vmax=100.0)
    labels = [f"{n} *" if n in found.core else n for n in names]
    axes.set_xticks(range(size), labels, rotation=30, ha="right")
    axes.set_yticks(range(size), labels)
    axes.set_title(
        f"Success, %, both groups at severity {found.severity:g}; diagonal: experts; "
        "* selected",
        fontsize=9,
        loc="left",
    )
    figure.colorbar(image, ax=axes, label="success, %", shrink=0.8)
    return figure


def reach_figure(found: CoreSearch) -> Any:
    """Draw how far every group is reached: by its expert, the full run, the core's."""
    bars = {
        "expert": [group.expert_coverage for group in found.groups],
        "full run": [group.full_coverage for group in found.groups],
        "core run": [group.core_coverage for group in found.groups],
    }
    figure, (axes,) = new_figure(1.6 + 0.9 * len(found.groups), 3.2)
    for k, (label, spreads) in enumerate(bars.items()):
        known = [(x, s) for x, s in enumerate(spreads) if s is not None]
        if known:
            axes.bar(
                [x + 0.27 * (k - 1) for x, _ in known],
                [100.0 * s.mean for _, s in known],
                yerr=[100.0 * (s.sd or 0.0) for _, s in known],
                width=0.25,
                color=COLOURS[k],
                ecolor=FAINT,
                label=label,
            )
    names = [finding.group for finding in found.groups]
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_ylim(0.0, 100.0)
    axes.set_ylabel("coverage of the group, %")
    axes.legend(fontsize=8, frameon=False)
    return figure


def _write(axes: Any, x: int, y: int, text: str, value: float, weight="normal") -> None:
    colour = "black" if value > 50.0 else "white"
    axes.text(
        *(x, y, text), ha="center", va="center", color=colour, fontsize=8, weight=weight
    )


def _points(spread: Any) -> str:
    text = f"{spread.mean:+.1f}"
    return text if spread.sd is None else f"{text} ± {spread.sd:.1f}"


def _core_coverage(group: GroupFinding) -> str:
    return show_spread(group.core_coverage, 100.0, 1) if group.core_coverage else ""


def _verdict(group: GroupFinding) -> str | Cell:
    if group.is_core:
        return Cell("core", "bold")
    return "hard, no partner" if group.is_hard else ""
