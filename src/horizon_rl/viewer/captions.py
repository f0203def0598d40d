"""Words on pictures."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

from horizon_rl.domains import Catalogue
from horizon_rl.evaluation.explain import AXES
from horizon_rl.support.errors import needs_extra
from horizon_rl.viewer.levels import Values, level_needed

with needs_extra("viewer"):
    import matplotlib
    from PIL import Image, ImageDraw, ImageFont

INK, GREY, RED = (25, 28, 33), (95, 102, 112), (200, 25, 25)
BARE_NAMES = ("scale", "offset")
"""Parameters that mean nothing without their group's name."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of text at a place of a picture."""

    text: str
    at: tuple[float, float]
    """Anchor, in pixels from the upper left corner."""
    size: int
    color: tuple[int, int, int] = INK
    bold: bool = False
    anchor: Literal["la", "ra", "ma", "ld", "rd"] = "la"
    """Pillow's: left, right or middle; a: the line hangs below, d: it stands above."""


def write_lines(pixels: np.ndarray, lines: Sequence[Line]) -> np.ndarray:
    """Return the picture with text on it."""
    image = Image.fromarray(np.ascontiguousarray(pixels))
    pen = ImageDraw.Draw(image)
    for line in lines:
        font = _font(line.bold, line.size)
        pen.text(line.at, line.text, line.color, font, line.anchor)
    return np.asarray(image)


def describe_values(catalogue: Catalogue, values: Values) -> list[str]:
    """Name the values outside their baselines, the furthest first: 'mass scale 2.7'."""
    far = []
    for name, parameter in catalogue.parameters.items():
        if name.startswith("reset."):
            continue  # Over after a moment.
        levels = [level_needed(parameter, float(v)) for v in values[name]]
        worst = int(np.argmax(levels))
        group = f"{name.split('.')[0]} " if parameter.name in BARE_NAMES else ""
        axis = f" {AXES[worst]}" if parameter.draws == len(AXES) else ""
        text = f"{group}{parameter.name.replace('_', ' ')}{axis}"
        value = f"{values[name][worst]:.2g} {parameter.unit}".rstrip()
        far.append((levels[worst], f"{text} {value}"))
    far.sort(key=lambda item: -item[0])
    return [text for level, text in far if level > 0.0]


def fit_items(items: Sequence[str], size: int, width_px: float) -> str:
    """Join as many of the items as fit into a line."""
    count = len(items)
    while count and _font(False, size).getlength(", ".join(items[:count])) > width_px:
        count -= 1
    return ", ".join(items[:count])


@cache
def _font(bold: bool, size: int) -> ImageFont.FreeTypeFont:
    # Comes with Matplotlib, so every machine draws the same.
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    folder = Path(matplotlib.get_data_path(), "fonts", "ttf")
    return ImageFont.truetype(str(folder / name), size)
