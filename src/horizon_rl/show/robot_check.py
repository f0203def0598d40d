"""The check of an imported robot: joints as they were taken, contacts, a sketch."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import degrees
from typing import Any

import numpy as np

from horizon_rl.show.table import Table, tabulate

COLUMNS = 44
DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""Bits of a braille character's dots, four rows of two."""


def joint_table(title: str, joints: Sequence[Mapping[str, Any]]) -> Table:
    """Lay out the twelve joints: what the file calls them, and how they turn."""

    def limits(joint: Mapping[str, Any]) -> str:
        ends = joint["limits_rad"]
        return f"{ends[0]:.2f}..{ends[1]:.2f}" if ends else "none"

    return tabulate(
        title,
        joints,
        [
            ("joint", lambda joint: joint["name"]),
            ("in the file", lambda joint: joint["joint"]),
            ("axis", lambda joint: " ".join(f"{x:g}" for x in joint["axis"])),
            ("limits\nrad", limits),
            ("pose\nrad", lambda joint: f"{joint['default_rad']:.2f}"),
            ("in the file\nrad", lambda joint: f"{joint['default_in_file_rad']:.2f}"),
            ("friction\nN m", lambda joint: f"{joint['friction_nm']:.2g}"),
            ("rotor\nkg m2", lambda joint: f"{joint['armature_kg_m2']:.2g}"),
        ],
        (
            "Limits and pose are counted as Go2's are, hips about x, thighs and calves about "
            "y, from a straight leg.",
        ),
        align="llr",
    )


def stance_table(robot: Mapping[str, Any]) -> Table:
    """Say how the robot stands, and what of it can touch the ground."""
    share = robot["standing_height_m"] / robot["leg_length_m"]
    height = f"{robot['standing_height_m']:.3f} m, {share:.0%} of the leg"
    pitch = robot["standing_pitch_rad"]
    nose = "" if abs(pitch) < 1e-3 else ", nose down" if pitch > 0.0 else ", nose up"
    contacts = Counter(robot["contacts"])
    touching = [f"{name} x{n}" if n > 1 else name for name, n in contacts.items()]
    rows = {
        "default pose": robot["pose_source"],
        "standing height": height,
        "standing pitch": f"{abs(degrees(pitch)):.1f} degrees{nose}",
        "mass": f"{robot['mass_kg']:.2f} kg",
        "motors of its own": _own_motors(robot),
        "feet": ", ".join(f"{leg} {name}" for leg, name in robot["feet"].items()),
        "also touch the ground": ", ".join(touching) or "nothing",
    }
    if robot["left_out"]:
        rows["left out"] = "; ".join(robot["left_out"])
    if not robot["trunk_touches_ground"]:
        rows["trunk"] = "cannot touch the ground: a fall shows only by its tilt"
    return Table("", ("", ""), tuple(rows.items()), align="l")


def _own_motors(robot: Mapping[str, Any]) -> str:
    """Say what is known of the motors that --motors own takes."""
    if robot["torque_limit_nm"] is None:
        return "not known: the file gives no torque limits"
    facts = ("velocity_limit_rad_s", "stiffness_nm_rad", "damping_nm_s_rad")
    missing = [name.split("_")[0] for name in facts if robot[name] is None]
    given = "torque limits of the file"
    return f"{given}; {', '.join(missing)} scaled to the body" if missing else given


def sketch(lines: Sequence[np.ndarray]) -> str:
    """Draw lines of points x, z [k, 2], m, above the ground, in braille characters."""
    points = np.concatenate(lines)
    left, right = points[:, 0].min(), points[:, 0].max()
    top = points[:, 1].max()
    scale = (2 * COLUMNS - 1) / (right - left)
    height = int(np.ceil(top * scale)) + 1
    rows = -(-height // 4)
    dots = np.zeros((4 * rows, 2 * COLUMNS), dtype=bool)
    for line in lines:
        for start, end in zip(line[:-1], line[1:], strict=True):
            steps = np.linspace(0.0, 1.0, 4 * COLUMNS)[:, None]
            x, z = (start + steps * (end - start)).T
            across = np.round((x - left) * scale).astype(int)
            down = np.round((top - z) * scale).astype(int)
            dots[np.clip(down, 0, len(dots) - 1), across] = True
    cells = dots.reshape(rows, 4, COLUMNS, 2).transpose(0, 2, 1, 3)
    codes = 0x2800 + (cells * DOTS).sum(axis=(2, 3))
    ground = "▔" * COLUMNS
    return "\n".join([*("".join(map(chr, row)).rstrip("⠀") for row in codes), ground])
