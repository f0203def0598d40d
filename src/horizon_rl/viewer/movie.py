"""Movie files: frames to .mp4 or .gif, whole or not at all."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from horizon_rl.support.durable import write_file
from horizon_rl.support.errors import InputError, needs_extra, require

with needs_extra("viewer"):
    import imageio.v2 as imageio
    import imageio_ffmpeg

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
