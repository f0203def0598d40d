"""What a session says of itself, as HTML for the page."""

from collections.abc import Iterable, Sequence
from html import escape
from math import inf

import numpy as np

from horizon_rl.viewer.levels import GroupLevels
from horizon_rl.viewer.session import Readout

GOOD, BAD = "#15803d", "#c81e1e"
STYLE = "font-size:0.8em;padding:0 0.8em;font-variant-numeric:tabular-nums"


def write_readout(
    readout: Readout, groups: Sequence[GroupLevels], real_time_factor: float
) -> str:
    """Lay out the numbers, and every group against what the policy has mastered."""
    state = f"<b style='color:{GOOD}'>on its feet</b>"
    if readout.fallen:
        state = f"<b style='color:{BAD}'>FALLEN ({escape(readout.fallen)})</b>"
    falls = "no fall"
    if readout.falls:
        falls = f"{readout.falls} falls, last {readout.since_fall_s:.0f} s ago"
    numbers = (
        ("state", state),
        ("asked", _velocity(readout.command)),
        ("does", _velocity(readout.velocity)),
        ("error", f"{readout.error:.2f} m/s"),
        ("height", f"{readout.height_m:.3f} m, tilt {readout.tilt_deg:.0f}°"),
        ("torque", f"{readout.torque_nm:.0f} of {readout.effort_nm:.0f} N m"),
        ("mass", f"{readout.mass_kg:.1f} kg"),
        ("time", f"{readout.time_s:.1f} s, {falls}"),
        ("pace", f"{real_time_factor:.2f} x real time"),
    )
    heads = [f"<b>{head}</b>" for head in ("group", "needs", "mastered", "")]
    levels = _table([heads, *map(_level_cells, groups)])
    return f"<div style='{STYLE}'>{_table(numbers)}{levels}</div>"


def _table(lines: Iterable[Sequence[str]]) -> str:
    body = "".join(
        f"<tr>{''.join(f'<td>{cell}</td>' for cell in line)}</tr>" for line in lines
    )
    return f"<table style='width:100%;margin-top:0.4em'>{body}</table>"


def _velocity(values: Sequence[float]) -> str:
    # Adding zero turns -0 into 0.
    forward, left, turn = np.round(values, 2) + 0.0
    return f"{forward:+.2f} {left:+.2f} m/s {turn:+.2f} rad/s"


def _level_cells(group: GroupLevels) -> list[str]:
    needed = "past limit" if group.needed == inf else f"{group.needed:.2f}"
    mastered, verdict, color = "unknown", "", "inherit"
    if group.mastered is not None:
        mastered = f"{group.mastered:.2f}"
        verdict, color = ("outside", BAD) if group.is_outside else ("inside", GOOD)
    cells = escape(group.group), needed, mastered, verdict
    return [f"<span style='color:{color}'>{cell}</span>" for cell in cells]
