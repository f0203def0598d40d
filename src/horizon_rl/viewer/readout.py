"""What a session says of itself, as HTML for the page."""

from collections.abc import Sequence
from html import escape
from math import inf

import numpy as np

from horizon_rl.viewer.levels import Reach
from horizon_rl.viewer.session import Readout

GOOD, BAD = "#15803d", "#c81e1e"
STYLE = "font-size:0.8em;padding:0 0.8em;font-variant-numeric:tabular-nums"


def write_readout(readout: Readout, reaches: Sequence[Reach], factor: float) -> str:
    """Lay out the numbers, and every group against what the policy has mastered."""
    state = f"<b style='color:{GOOD}'>on its feet</b>"
    if readout.fallen:
        state = f"<b style='color:{BAD}'>FALLEN ({escape(readout.fallen)})</b>"
    falls = "no fall"
    if readout.falls:
        falls = f"{readout.falls} falls, last {readout.since_fall_s:.0f} s ago"
    rows = (
        ("state", state),
        ("asked", _velocity(readout.command)),
        ("does", _velocity(readout.velocity)),
        ("error", f"{readout.error:.2f} m/s"),
        ("height", f"{readout.height_m:.3f} m, tilt {readout.tilt_deg:.0f}°"),
        ("torque", f"{readout.torque_nm:.0f} of {readout.effort_nm:.0f} N m"),
        ("mass", f"{readout.mass_kg:.1f} kg"),
        ("time", f"{readout.time_s:.1f} s, {falls}"),
        ("pace", f"{factor:.2f} x real time"),
    )
    body = "".join(f"<tr><td>{key}</td><td>{value}</td></tr>" for key, value in rows)
    heads = "".join(f"<td><b>{h}</b></td>" for h in ("group", "needs", "mastered", ""))
    groups = "".join(map(_write_reach, reaches))
    table = "<table style='width:100%;margin-top:0.4em'>"
    return (
        f"<div style='{STYLE}'>{table}{body}</table>"
        f"{table}<tr>{heads}</tr>{groups}</table></div>"
    )


def _velocity(values: Sequence[float]) -> str:
    # Adding zero turns -0 into 0.
    forward, left, turn = np.round(values, 2) + 0.0
    return f"{forward:+.2f} {left:+.2f} m/s {turn:+.2f} rad/s"


def _write_reach(reach: Reach) -> str:
    needed = "past limit" if reach.needed == inf else f"{reach.needed:.2f}"
    mastered, verdict, color = "unknown", "", "inherit"
    if reach.mastered is not None:
        mastered = f"{reach.mastered:.2f}"
        verdict, color = ("outside", BAD) if reach.is_outside else ("inside", GOOD)
    return (
        f"<tr style='color:{color}'><td>{escape(reach.group)}</td><td>{needed}</td>"
        f"<td>{mastered}</td><td>{verdict}</td></tr>"
    )
