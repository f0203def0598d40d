"""Flags of `horizon play`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from horizon_rl.cli.common import CatalogueFlag
from horizon_rl.support.bounds import Port, Within

ADVANCED = ("montage", "picture", "size", "fps", "native", "host", "port", "catalogue")

Speed = Annotated[float, Within(-5.0, 5.0)]


@dataclass(frozen=True, kw_only=True)
class PlayCmd:
    """Play with a policy in the browser, or film it: drive, push, change its physics."""

    policy: Annotated[
        str, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME=]POLICY")
    ] = "core"
    """A name of `horizon models`, a checkpoint or run, the `last` run, an .onnx file,
    FILE.py:NAME, or `stand`."""
    robot: str | None = None
    """Preset, intervention (go2+stilts) or MJCF file; without it, go2."""
    ground: str | None = None
    """Ground to begin on: flat, or a column of the suite `ground`, as in stairs-8."""
    scenario: str | None = None
    """Scenario of a suite, SUITE:COLUMN[@SEVERITY][#NUMBER]: ood:all@0.5#17."""
    command: tuple[Speed, Speed, Speed] | None = None
    """Forward and left, m/s, and turn, rad/s, to begin with; without it 0.8 0 0, or what
    the scenario asks for."""
    video: Path | None = None
    """File to film into, .mp4 or .gif, in place of playing; needs no screen."""
    versus: str | None = None
    """Another policy beside the first, in the same physics under the same commands."""
    montage: bool = False
    """Film and draw the paper's seven robots, to --video and --picture."""
    picture: Path | None = None
    """PNG file of the montage: every robot at several instants."""
    seconds: Annotated[float, Within(0.02, 600.0)] | None = None
    """Length of a video; without it, the whole scenario, or 10 s."""
    size: str | None = None
    """Size of a video, 960x540."""
    fps: Annotated[float, Within(1.0, 50.0)] | None = None
    """Frames per second of a video; without it 25, and 12.5 in a GIF."""
    native: bool = False
    """Open MuJoCo's own window; needs a screen."""
    host: str = "127.0.0.1"
    """Address to serve the page on; 0.0.0.0 lets others in whom you give the page's
    whole address."""
    port: Port = 8080
    """Port of the page; the next free one if it is taken."""
    catalogue: CatalogueFlag = None
