"""Film sessions: one policy, or several side by side; movie files, whole or not at all."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from horizon_rl.physics import CONTROL_DT, cores_for_physics
from horizon_rl.support.durable import write_file
from horizon_rl.support.errors import InputError, needs_extra, require
from horizon_rl.viewer.levels import describe_values
from horizon_rl.viewer.readout import format_velocity
from horizon_rl.viewer.session import Session
from horizon_rl.viewer.studio import Studio, side_view

with needs_extra("viewer"):
    import imageio.v2 as imageio
    import imageio_ffmpeg
    import matplotlib
    from PIL import Image, ImageDraw, ImageFont

FOLLOW = 0.15
"""Share of the way to the robot that the camera goes in a frame of 1/25 s."""
INK, GREY, RED = (25, 28, 33), (95, 102, 112), (200, 25, 25)
PAPER = (252, 252, 252)
GIF_FPS = 12.5
GIF_PALETTE = (
    "[0:v]split[a][b];[a]palettegen=max_colors=64:stats_mode=full[p];"
    "[b][p]paletteuse=dither=none:diff_mode=rectangle"
)
"""Few colours and no dither: robots on a floor need no more, and it stays small."""
ENCODERS: dict[str, dict[str, Any]] = {
    # Plays from the first byte, and in every browser.
    ".mp4": {
        "codec": "libx264",
        "quality": 7,
        "output_params": ["-movflags", "+faststart"],
    },
    ".gif": {
        "codec": "gif",
        "pixelformat": "pal8",
        "output_params": [*("-filter_complex", GIF_PALETTE, "-loop", "0", "-f", "gif")],
    },
}


@dataclass(frozen=True, kw_only=True)
class MovieCfg:
    """Size and pace of a movie."""

    width: int = 960
    height: int = 540
    fps: float = 25.0

    def __post_init__(self):
        require("frames per second", self.fps, 1.0, 50.0)
        for name, value in (("width", self.width), ("height", self.height)):
            require(name, value, 64, 4096)
            if value % 2:
                raise InputError(f"{name} is {value}; accepted: even numbers")

    def num_frames(self, seconds: float) -> int:
        return max(1, round(seconds * self.fps))


def film_sessions(
    sessions: Sequence[Session],
    cfg: MovieCfg,
    seconds: float,
    grid: tuple[int, int] | None = None,
    label: Callable[[Image.Image, Session], None] | None = None,
    shown_m: float | None = None,
) -> Iterator[np.ndarray]:
    """Play sessions, each in a panel of its own, and yield frames.

    Args:
        sessions: At most as many as there are panels; all see the same time.
        cfg: Size and pace.
        seconds: How long.
        grid: Panels from left to right, and from top to bottom; None: side by side.
        label: Writes on the picture of a session; None: `caption`.
        shown_m: What a panel shows from bottom to top; None: in perspective.
    """
    columns, rows = grid or (len(sessions), 1)
    width, height = cfg.width // columns, cfg.height // rows
    share = 1.0 - (1.0 - FOLLOW) ** (25.0 / cfg.fps)
    places, done = [session.place.copy() for session in sessions], 0
    with ExitStack() as stack:
        studios = [
            stack.enter_context(closing(Studio(s.robot, width, height, shown_m)))
            for s in sessions
        ]
        for frame in range(cfg.num_frames(seconds)):
            wanted = round(frame / cfg.fps / CONTROL_DT)
            page = Image.new("RGB", (cfg.width, cfg.height), PAPER)
            for number, session in enumerate(sessions):
                play(session, wanted - done)
                left = session.place - places[number]
                left[:2] = session.robot.ground.nearest(left[:2])
                places[number] = session.place - (1.0 - share) * left
                camera = side_view(session.robot, places[number], width / height)
                shot = studios[number].draw([session.state], camera, session.shown_push)
                row, column = divmod(number, columns)
                shot[: 2 * (row > 0)] = shot[:, : 2 * (column > 0)] = GREY
                image = Image.fromarray(shot)
                (label or caption)(image, session)
                page.paste(image, (column * width, row * height))
            done = wanted
            yield np.array(page)


def play(session: Session, steps: int) -> None:
    """Play on for so many control steps."""
    with cores_for_physics(session.env.backend):
        for _ in range(steps):
            session.step()


def write(
    image: Image.Image,
    text: str,
    at: tuple[float, float],
    size: int,
    color: tuple[int, int, int] = INK,
    bold: bool = False,
    anchor: str = "la",
) -> None:
    """Write a line of text on a picture.

    `at` is in pixels from the upper left corner; `anchor` is Pillow's: l left or r
    right of the line, then a: the line is below, d: above.
    """
    ImageDraw.Draw(image).text(at, text, color, _font(bold, size), anchor)


@cache
def _font(bold: bool, size: int) -> ImageFont.FreeTypeFont:
    # Comes with Matplotlib, so every machine draws the same.
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    folder = Path(matplotlib.get_data_path(), "fonts", "ttf")
    return ImageFont.truetype(str(folder / name), size)


def caption(image: Image.Image, session: Session) -> None:
    """Write policy, scenario, physics, motion and fall on a picture."""
    width, height = image.size
    size = max(10, round(min(height / 27, width / 40)))
    gap, large = size // 2 + 4, round(1.5 * size)
    right, line = width - gap, gap + 1.35 * large
    readout, setup = session.readout(), session.setup
    physics = describe_values(setup.catalogue, session.values)
    while physics and _font(False, size).getlength(", ".join(physics)) > right - gap:
        physics.pop()
    where = "  ".join(filter(None, (session.body.name, setup.scenario)))
    asked = format_velocity(readout.command, 1)
    motion = f"asked {asked}, does {format_velocity(readout.velocity, 1)}"
    write(image, session.policy.name, (gap, gap), large, bold=True)
    write(image, f"{readout.time_s:.1f} s", (right, gap), large, anchor="ra")
    write(image, where, (gap, line), size, GREY)
    write(image, ", ".join(physics), (gap, line + 1.4 * size), size, GREY)
    write(image, motion, (gap, height - gap), size, anchor="ld")
    if readout.fallen:
        text, at = session.describe_end(), height - gap - 1.5 * size
        write(image, text, (right, at), large, RED, bold=True, anchor="rd")


def parse_size(text: str) -> tuple[int, int]:
    """Read a size written as 960x540."""
    found = re.fullmatch(r"(\d+)x(\d+)", text)
    if not found:
        raise InputError(f"size '{text}' is not of the form WIDTHxHEIGHT, as 960x540")
    return int(found[1]), int(found[2])


def check_movie(path: Path) -> None:
    """Refuse a movie that cannot be encoded, before the long work begins."""
    if path.suffix.lower() not in ENCODERS:
        raise InputError(f"{path}: a video's name ends in {' or '.join(ENCODERS)}")
    try:
        imageio_ffmpeg.get_ffmpeg_exe()
    except RuntimeError as error:
        raise InputError(f"writing a video needs ffmpeg: {error}") from error


def write_picture(path: Path, pixels: np.ndarray) -> None:
    """Write a PNG file of an RGB picture, uint8 of shape (height, width, 3)."""
    write_file(path, imageio.imwrite("<bytes>", pixels, format="png"))


def write_movie(path: Path, frames: Iterable[np.ndarray], fps: float) -> None:
    """Encode RGB frames, uint8 of shape (height, width, 3)."""
    encoder = ENCODERS[path.suffix.lower()]
    with TemporaryDirectory() as folder:
        # imageio would not let ffmpeg write a file that is called .gif.
        aside = Path(folder, "movie.mp4")
        # Any: imageio's stubs do not know what a writer can do.
        writer: Any = imageio.get_writer(
            aside,
            format="FFMPEG",
            fps=fps,
            macro_block_size=2,
            ffmpeg_log_level="error",
            **encoder,
        )
        with writer:
            for frame in frames:
                writer.append_data(frame)
        write_file(path, aside.read_bytes())
