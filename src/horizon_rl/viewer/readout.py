"""What a session says of itself, as HTML for the page."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import inf

import numpy as np

from horizon_rl.viewer.session import Readout

GOOD, BAD = "light-dark(#15803d, #4ade80)", "light-dark(#c81e1e, #f87171)"
STYLE = "font-size:0.8em;padding:0 0.8em;font-variant-numeric:tabular-nums"


def write_readout(
    readout: Readout,
    groups: Mapping[str, tuple[float, float | None]],
    real_time_factor: float,
    compared: Sequence[tuple[str, Readout]] = (),
) -> str:
    """Lay out the numbers, and every group against what the policy has mastered.

    Args:
        readout: Of the session that the page is about.
        groups: By name the level that its physics needs, and the mastered one.
        real_time_factor: How fast it runs.
        compared: Names and readouts of all sessions where there are several.
    """
    state = _state(readout)
    numbers = (
        ("state", f"<b>{state}</b>"),
        ("asked", format_velocity(readout.command, 2)),
        ("does", format_velocity(readout.velocity, 2)),
        ("error", f"{readout.error:.2f} m/s"),
        ("height", f"{readout.height_m:.3f} m, tilt {readout.tilt_deg:.0f}°"),
        ("torque", f"{readout.torque_nm:.0f} of {readout.effort_nm:.0f} N m"),
        ("mass", f"{readout.mass_kg:.1f} kg"),
        ("time", f"{readout.time_s:.1f} s, {readout.falls or 'no'} falls"),
        ("pace", f"{real_time_factor:.2f} x real time"),
    )
    rivals = [
        (f"<b>{escape(name)}</b>", _state(r), f"{r.error:.2f} m/s", f"{r.falls} falls")
        for name, r in compared
    ]
    levels = [[f"<b>{head}</b>" for head in ("group", "needs", "mastered", "")]]
    for group, (level, known) in groups.items():
        if level == known == 0.0:
            # Says nothing, and on a phone there is no room for all groups.
            continue
        needed, mastered = "past limit" if level == inf else f"{level:.2f}", "unknown"
        verdict, color = "", "inherit"
        if known is not None:
            mastered = f"{known:.2f}"
            outside = level > known + 1e-9
            verdict, color = ("outside", BAD) if outside else ("inside", GOOD)
        cells = group, needed, mastered, verdict
        levels.append([_color(cell, color) for cell in cells])
    return (
        f"<div style='{STYLE}'>{_table(rivals)}{_table(numbers)}{_table(levels)}</div>"
    )


def format_velocity(values: Sequence[float], digits: int) -> str:
    """Write a command or a motion: forward and left, m/s; turn, rad/s."""
    # Adding zero turns -0 into 0.
    forward, left, turn = (f"{v:+.{digits}f}" for v in np.round(values, digits) + 0.0)
    return f"{forward} {left} m/s {turn} rad/s"


def _state(readout: Readout) -> str:
    if readout.fallen:
        return _color(f"FALLEN ({readout.fallen})", BAD)
    return _color("on its feet", GOOD)


def _color(text: str, color: str) -> str:
    return f"<span style='color:{color}'>{escape(text)}</span>"


def _table(lines: Iterable[Sequence[str]]) -> str:
    rows = ("".join(f"<td>{cell}</td>" for cell in line) for line in lines)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table style='width:100%;margin-top:0.4em'>{body}</table>"
