"""`horizon robots`: the bodies at hand, their numbers and their looks."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from horizon_rl import robots
from horizon_rl.cli.common import Terminal, check_file, print_json
from horizon_rl.robots import Leg, Morphology, Robot
from horizon_rl.show.robot_sheet import save_robots
from horizon_rl.show.table import Table
from horizon_rl.support.errors import InputError

MOTORS = (
    *("torque_limit_nm", "velocity_limit_rad_s"),
    *("stiffness_nm_rad", "damping_nm_s_rad"),
)


@dataclass(frozen=True, kw_only=True)
class RobotsCmd:
    """List robots: mass, link lengths, standing height, motors; draw them."""

    name: tyro.conf.Positional[tuple[str, ...]] = ()
    """Robots to show, all without it; `go2+stilts` is one after an intervention."""
    mjcf: Annotated[tuple[Path, ...], tyro.conf.UseAppendAction] = ()
    """MJCF file of a quadruped to import and show; repeat it for several."""
    joints: Path | None = None
    """JSON file that maps FL_hip .. RR_calf to the MJCF file's joint names."""
    picture: Path | None = None
    """PNG file to draw the robots into, standing side by side."""
    json: bool = False
    """Print JSON instead of a table."""


def run(cmd: RobotsCmd) -> None:
    if cmd.picture:
        check_file("--picture", cmd.picture, ".png")
    bodies = [robots.load_body(name) for name in cmd.name]
    if not bodies and not cmd.mjcf:
        bodies = [robots.load_preset(name) for name in robots.preset_names()]
    if cmd.joints and not cmd.mjcf:
        raise InputError("--joints needs --mjcf, the file whose joints it maps")
    joints = _read_joints(cmd.joints)
    imported = {path: robots.load_mjcf(path, joints=joints) for path in cmd.mjcf}
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
    if cmd.picture:
        print(f"drawn in {cmd.picture}")


def describe(body: Morphology) -> dict[str, Any]:
    """Return a body as plain data: the `--json` interface."""
    pair = (body.front, body.rear)
    thigh = sum(leg.thigh_length_m for leg in pair) / 2.0
    calf = sum(leg.shank_length_m for leg in pair) / 2.0
    front_height, rear_height = map(_level_height_m, pair)
    return {
        "name": body.name,
        "title": body.title,
        "mass_kg": body.total_mass_kg,
        "thigh_length_m": thigh,
        "calf_length_m": calf,
        "leg_length_m": thigh + calf,
        "standing_height_m": body.standing_height_m,
        "standing_pitch_rad": body.stance.pitch_rad,
        "front_height_m": front_height,
        "rear_height_m": rear_height,
        "default_pose_rad": body.default_pose_rad.tolist(),
        **_motors(body),
        "sources": list(body.sources),
        "licence": body.licence,
        "estimated": list(body.estimated),
    }


def describe_import(robot: Robot, path: Path) -> dict[str, Any]:
    """Return an imported robot as plain data, motors as of its front left leg."""
    return {
        "name": robot.name,
        "title": robot.name,
        "mass_kg": robot.total_mass_kg,
        "thigh_length_m": robot.thigh_length_m,
        "calf_length_m": robot.calf_length_m,
        "leg_length_m": robot.leg_length_m,
        "standing_height_m": robot.standing_height_m,
        "default_pose_rad": robot.default_pose_rad.tolist(),
        **_motors(robot),
        "sources": [str(path)],
        "estimated": [],
    }


def _motors(robot: Morphology | Robot) -> dict[str, list[float] | None]:
    """Return limits and gains of hip, thigh and calf, of the front left leg."""
    return {
        key: _plain(values if (values := getattr(robot, key)) is None else values[:3])
        for key in MOTORS
    }


def _numbers(rows: Sequence[Mapping[str, Any]]) -> Table:
    lengths = ("thigh_length_m", "calf_length_m", "leg_length_m", "standing_height_m")
    return Table(
        "Robots",
        (
            *("robot", "mass\nkg", "thigh\nm", "calf\nm", "leg\nm", "height\nm"),
            *("torque N m\nhip thigh calf", "velocity rad/s\nhip thigh calf"),
        ),
        tuple(
            (
                row["name"],
                f"{row['mass_kg']:.1f}",
                *(f"{row[key]:.3f}" for key in lengths),
                _triple(row["torque_limit_nm"]),
                "~" * ("velocity limit" in row["estimated"])
                + _triple(row["velocity_limit_rad_s"]),
            )
            for row in rows
        ),
    )


def _sources(rows: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        "",
        ("robot", "source (--json has the paths)", "estimated"),
        tuple(
            (
                row["name"],
                ", ".join(dict.fromkeys(map(_repository, row["sources"]))),
                ", ".join(row["estimated"]),
            )
            for row in rows
        ),
        align="l",
    )


def _triple(values: Sequence[float] | None) -> str:
    if values is None:
        return "unknown"
    return " ".join(f"{value:.3g}" for value in values)


def _repository(source: str) -> str:
    """Shorten owner/name@commit:path (what) to name."""
    found = re.match(r"[^/]+/([^@:]+)[@:]", source)
    return found[1] if found else source


def _level_height_m(leg: Leg) -> float:
    """Return how high a level trunk's origin stands over this leg's foot."""
    return leg.foot_radius_m - float(leg.frames(leg.default_pose_rad)[3][0][2])


def _plain(values: Sequence[float] | np.ndarray | None) -> list[float] | None:
    """Make numbers fit for JSON; not known (None, NaN) is null."""
    if values is None or any(map(math.isnan, values)):
        return None
    return [float(value) for value in values]


def _read_joints(path: Path | None) -> dict[str, str] | None:
    if path is None:
        return None
    try:
        joints = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"--joints {path}: not a readable JSON file: {error}"
        ) from error
    if not isinstance(joints, dict):
        raise InputError(
            f'--joints {path}: needs an object such as {{"FL_hip": "..."}}'
        )
    return joints
