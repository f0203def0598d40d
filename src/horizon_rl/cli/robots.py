"""`horizon robots`: the bodies at hand, their numbers and their looks."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from horizon_rl import robots
from horizon_rl.cli.common import Terminal, check_file, print_json, say, warn_of_pose
from horizon_rl.policies.shipped import model_names
from horizon_rl.robots import Morphology, Robot
from horizon_rl.robots.bodies import is_mjcf
from horizon_rl.show.robot_check import joint_table, sketch, stance_table
from horizon_rl.show.robot_sheet import save_robots
from horizon_rl.show.table import Table, tabulate
from horizon_rl.support.errors import InputError

MOTORS = (
    *("torque_limit_nm", "velocity_limit_rad_s"),
    *("stiffness_nm_rad", "damping_nm_s_rad"),
)


@dataclass(frozen=True, kw_only=True)
class RobotsCmd:
    """List robots: mass, link lengths, standing height, motors; check your own, draw them."""

    name: tyro.conf.Positional[tuple[str, ...]] = ()
    """Robots to show, all without it: names, `go2+stilts` is one after an intervention;
    or MJCF files, which are imported and checked."""
    joints: Path | None = None
    """JSON file that maps FL_hip .. RR_calf to the MJCF file's joint names. Without it
    mine.joints.json, beside mine.xml, is used if it is there, by all commands."""
    picture: Path | None = None
    """PNG file to draw the robots into, standing side by side."""
    json: bool = False
    """Print JSON instead of a table."""


def run(cmd: RobotsCmd) -> None:
    if cmd.picture:
        check_file("--picture", cmd.picture, ".png")
    files = [Path(name) for name in cmd.name if is_mjcf(name)]
    bodies = [robots.load_body(name) for name in cmd.name if not is_mjcf(name)]
    if not bodies and not files:
        bodies = [robots.load_preset(name) for name in robots.preset_names()]
    if cmd.joints and not files:
        raise InputError("--joints needs the MJCF file whose joints it maps")
    imported = {path: robots.load_mjcf(path, joints=cmd.joints) for path in files}
    for path in files if cmd.joints is None else ():
        warn_of_pose(str(path), model_names())
    rows = [describe(body) for body in bodies]
    rows += [describe_import(robot, path) for path, robot in imported.items()]
    if cmd.picture:
        standing = [robots.build_robot(body) for body in bodies] + [*imported.values()]
        save_robots(cmd.picture, standing)
    if cmd.json:
        print_json({"robots": rows})
        return
    console = Terminal()
    console.print_table(_numbers(rows))
    console.print_table(_sources(rows))
    for row, robot in zip(rows[len(bodies) :], imported.values(), strict=True):
        console.print_table(joint_table(f"Check of {robot.name}", row["joints"]))
        console.print_table(stance_table(row))
        console.print(sketch(robots.outline(robot)))
    if cmd.picture:
        say(f"drawn in {cmd.picture}")


def describe(body: Morphology) -> dict[str, Any]:
    """Return a body as plain data: the `--json` interface."""
    pair = (body.front, body.rear)
    calf = sum(leg.shank_length_m for leg in pair) / 2.0  # Stilts included.
    # How high a level trunk's origin stands over the feet.
    front_height, rear_height = (
        leg.foot_radius_m - float(leg.frames(leg.default_pose_rad)[3][0][2])
        for leg in pair
    )
    return {
        **_describe(body, calf),
        "title": body.title,
        "standing_pitch_rad": body.stance.pitch_rad,
        "front_height_m": front_height,
        "rear_height_m": rear_height,
        "sources": list(body.sources),
        "licence": body.licence,
        "estimated": list(body.estimated),
    }


def describe_import(robot: Robot, path: Path) -> dict[str, Any]:
    """Return an imported robot as plain data, motors as of its front left leg."""
    return {
        **_describe(robot, robot.calf_length_m),
        **robots.inspect_robot(robot),
        "title": robot.name,
        "sources": [str(path)],
        "estimated": [],
    }


def _describe(robot: Morphology | Robot, calf_m: float) -> dict[str, Any]:
    return {
        "name": robot.name,
        "mass_kg": robot.total_mass_kg,
        "thigh_length_m": robot.thigh_length_m,
        "calf_length_m": calf_m,
        "leg_length_m": robot.thigh_length_m + calf_m,
        "standing_height_m": robot.standing_height_m,
        "default_pose_rad": robot.default_pose_rad.tolist(),
        **{key: _of_one_leg(getattr(robot, key)) for key in MOTORS},
    }


def _numbers(rows: Sequence[Mapping[str, Any]]) -> Table:
    def length(key: str) -> Callable[[Mapping[str, Any]], str]:
        return lambda row: f"{row[key]:.3f}"

    def velocity(row: Mapping[str, Any]) -> str:
        mark = "~" * ("velocity limit" in row["estimated"])
        return mark + _triple(row["velocity_limit_rad_s"])

    return tabulate(
        "Robots",
        rows,
        [
            ("robot", lambda row: row["name"]),
            ("mass\nkg", lambda row: f"{row['mass_kg']:.1f}"),
            ("thigh\nm", length("thigh_length_m")),
            ("calf\nm", length("calf_length_m")),
            ("leg\nm", length("leg_length_m")),
            ("height\nm", length("standing_height_m")),
            ("torque N m\nhip thigh calf", lambda row: _triple(row["torque_limit_nm"])),
            ("velocity rad/s\nhip thigh calf", velocity),
        ],
    )


def _sources(rows: Sequence[Mapping[str, Any]]) -> Table:
    def repositories(row: Mapping[str, Any]) -> str:
        # From owner/name@commit:path (what) to name.
        names = (re.sub(r"^[^/]+/([^@:]+)[@:].*", r"\1", s) for s in row["sources"])
        return ", ".join(dict.fromkeys(names))

    return tabulate(
        "",
        rows,
        [
            ("robot", lambda row: row["name"]),
            ("source (--json has the paths)", repositories),
            ("estimated", lambda row: ", ".join(row["estimated"])),
        ],
        align="l",
    )


def _triple(values: Sequence[float] | None) -> str:
    return " ".join(f"{value:.3g}" for value in values) if values else "unknown"


def _of_one_leg(values: np.ndarray | None) -> list[float] | None:
    """Return hip, thigh and calf for JSON; not known (None, NaN) is null."""
    if values is None or np.isnan(values[:3]).any():
        return None
    return [float(value) for value in values[:3]]
