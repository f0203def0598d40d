"""`horizon export`: a policy as one ONNX file, for a robot."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from warnings import warn

from horizon_rl.cli.common import Terminal, check_file, warn_of_pose
from horizon_rl.cli.export_flags import ExportCmd
from horizon_rl.runs.find import spell_out
from horizon_rl.support.durable import write_file
from horizon_rl.support.errors import InputError, needs_extra

with needs_extra("onnx"):
    from horizon_rl.domains import Catalogue
    from horizon_rl.policies.deployment import (
        NUM_STEPS,
        TOLERANCE,
        Exported,
        export_policy,
        standalone_mjcf,
    )
    from horizon_rl.policies.learned import load_actor
    from horizon_rl.policies.shipped import find_checkpoint, model_names
    from horizon_rl.robots import REFERENCE, load_preset, load_robot
    from horizon_rl.support.records import decode

EFFORT = "actuation.effort_limit"
"""The parameter of a catalogue that is a motor's torque limit."""
ROUNDING = 1.001
"""Ratio of two limits up to which they count as the same."""


def run(cmd: ExportCmd) -> None:
    cmd = replace(cmd, checkpoint=spell_out(cmd.checkpoint, model_names()))
    check_file("OUT", cmd.out, ".onnx")
    if cmd.mjcf:
        check_file("--mjcf", cmd.mjcf, ".xml")
        if Path(cmd.robot).suffix:
            raise InputError(
                f"--mjcf writes robots of `horizon robots`; {cmd.robot} is a file already"
            )
    warn_of_pose(cmd.robot, [cmd.checkpoint])
    trained_nm = _least_trained_torque(cmd)
    with Terminal(stderr=True).status("writing the network") as status:

        def tell(done: int, total: int) -> None:
            status.update(f"checking it, {100 * done // total} %")

        exported = export_policy(
            cmd.checkpoint, cmd.robot, cmd.motors, tell, trust=cmd.trust
        )
    if cmd.mjcf:
        write_file(cmd.mjcf, standalone_mjcf(cmd.robot).encode())
    write_file(cmd.out, exported.content)
    _print(cmd, exported, trained_nm)
    _warn_of_torque(exported.metadata, trained_nm)


def _least_trained_torque(cmd: ExportCmd) -> float | None:
    """Return the smallest torque limit of the training, scaled to the robot, N m."""
    *_, record = load_actor(find_checkpoint(cmd.checkpoint))
    catalogue = decode(Catalogue, record.catalogue)
    if EFFORT not in catalogue.parameters:
        return None
    body, reference = load_robot(cmd.robot), load_preset(REFERENCE)
    scale = catalogue.parameters[EFFORT].scale_for(
        body.body_mass_kg / reference.body_mass_kg,
        body.leg_length_m / reference.leg_length_m,
    )
    return scale * catalogue.ranges(record.levels)[EFFORT].low


def _print(cmd: ExportCmd, exported: Exported, trained_nm: float | None) -> None:
    meta, robot = exported.metadata, exported.metadata["robot"]
    levels = (
        f"{name} {level:.2f}" for name, level in meta["training"]["levels"].items()
    )
    median_ms, p99_ms = exported.latency_ms
    lines = {
        "file": f"{cmd.out}, {len(exported.content) / 1024:.0f} KiB",
        "policy": f"{meta['name']}, {meta['kind']}, remembers {meta['window']} steps",
        "levels": ", ".join(levels) or "baseline",
        "robot": f"{robot['name']}, {robot['motors']} motors"
        + (f", in {cmd.mjcf}" if cmd.mjcf else ""),
        "in": _shapes(exported.policy.inputs),
        "out": _shapes(exported.policy.outputs),
        "checked": f"{NUM_STEPS} steps against torch: largest difference "
        f"{exported.largest_difference:.1e} (accepted: {TOLERANCE:g})",
        "latency": f"{median_ms:.3f} ms, 99 % within {p99_ms:.3f} ms; one step, one "
        "thread",
    }
    least = min(meta["joints"]["torque_limit_nm"])
    if trained_nm and trained_nm > ROUNDING * least:
        lines["torque"] = (
            f"smallest limit {least:.3g} N m; training, scaled to {robot['name']}, went "
            f"down to {trained_nm:.3g} N m only"
        )
    walk = f"python examples/deploy.py {cmd.out} {cmd.mjcf}"
    other = f" --robot {cmd.robot}" if cmd.robot != REFERENCE else ""
    evaluate = f"horizon eval {cmd.out}{other} --episodes 64"
    lines["next"] = walk if cmd.mjcf else evaluate
    console = Terminal(soft_wrap=True, highlight=False)
    for name, text in lines.items():
        console.print(f"{name:<8} {text}")


def _warn_of_torque(metadata: dict[str, Any], trained_nm: float | None) -> None:
    """Say where the file allows torques that the real motors do not have."""
    robot, joints = metadata["robot"], metadata["joints"]
    own = robot["own_torque_limit_nm"]
    if own is None:
        return
    pairs = zip(joints["torque_limit_nm"], own, strict=True)
    most, real = max(pairs, key=lambda pair: pair[0] / pair[1])
    if most > ROUNDING * real:
        least = f"{trained_nm:.3g} N m and more" if trained_nm else ""
        trained = least and f" Its training, scaled to {robot['name']}, had {least}."
        warn(
            f"the file's torque limits are up to {most:.3g} N m where {robot['name']}'s "
            f"own motors have {real:.3g}: have the driver clip at its own, or export "
            f"with --motors own.{trained}",
            stacklevel=1,
        )


def _shapes(shapes: dict[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
