"""`horizon export`: a policy as one ONNX file, for a robot."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console

from horizon_rl.cli.common import Terminal, check_file
from horizon_rl.support.durable import write_file
from horizon_rl.support.errors import InputError, needs_extra

with needs_extra("onnx"):
    from horizon_rl.policies.deployment import (
        NUM_STEPS,
        TOLERANCE,
        Exported,
        export_policy,
        standalone_mjcf,
    )


@dataclass(frozen=True, kw_only=True)
class ExportCmd:
    """Write a policy as one ONNX file that says of itself all that a robot needs.

    The normaliser is inside, memory goes in and out, and joint order, default pose,
    gains, rates and the record of training lie in it as JSON. The file is written only
    if it acts as the checkpoint does.
    """

    checkpoint: Annotated[
        str,
        tyro.conf.Positional,
        tyro.conf.arg(metavar="CHECKPOINT", help_behavior_hint=""),
    ]
    """A name of `horizon models`, a run or a checkpoint's directory."""
    out: Annotated[
        Path,
        tyro.conf.Positional,
        tyro.conf.arg(metavar="OUT.onnx", help_behavior_hint=""),
    ]
    """File to write; what stands there is replaced."""
    robot: str = "go2"
    """What pose and gains are for: preset, intervention (go2+stilts) or MJCF file."""
    motors: Literal["scaled", "own"] = "scaled"
    """scaled: gains as in training, scaled to the robot. own: the real robot's."""
    mjcf: Path | None = None
    """File to write the robot to, *.xml, as a MuJoCo model that needs no other file."""


def run(cmd: ExportCmd) -> None:
    check_file("OUT", cmd.out, ".onnx")
    if cmd.mjcf:
        check_file("--mjcf", cmd.mjcf, ".xml")
        if Path(cmd.robot).suffix:
            raise InputError(
                f"--mjcf writes robots of `horizon robots`; {cmd.robot} is a file already"
            )
    with Console(stderr=True).status("writing the network") as status:

        def tell(done: int, total: int) -> None:
            status.update(f"checking it, {100 * done // total} %")

        exported = export_policy(cmd.checkpoint, cmd.robot, cmd.motors, tell)
    if cmd.mjcf:
        write_file(cmd.mjcf, standalone_mjcf(cmd.robot).encode())
    write_file(cmd.out, exported.content)
    _print(cmd, exported)


def _print(cmd: ExportCmd, exported: Exported) -> None:
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
    console = Terminal(soft_wrap=True, highlight=False)
    for name, text in lines.items():
        console.print(f"{name:<8} {text}", markup=False)


def _shapes(shapes: dict[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
