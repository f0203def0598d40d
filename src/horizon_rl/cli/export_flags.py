"""Flags of `horizon export`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro


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
    """A name of `horizon models`, a run, the `last` run, or a checkpoint's directory."""
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
    trust: bool = False
    """Run code that its catalogue names for motors, although you never ran it."""
