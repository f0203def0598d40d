"""A sheet of robots, standing side by side to one scale."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from horizon_rl import robots
from horizon_rl.robots import Robot
from horizon_rl.support.errors import needs_extra

ROW_WIDTH_M = 5.0
PIXELS_PER_M = 400
LABEL_PX = 60
DPI = 100


def save_robots(path: Path, standing: Sequence[Robot]) -> None:
    """Draw robots side by side, in rows, to one scale and with their names."""
    with needs_extra("plot"):
        from matplotlib.figure import Figure
    tiles = robots.draw_robots(standing, PIXELS_PER_M)
    widths = [tile.shape[1] for tile in tiles]
    num_rows = max(1, round(sum(widths) / (ROW_WIDTH_M * PIXELS_PER_M)))
    rows = np.array_split(np.arange(len(tiles)), num_rows)
    row_widths = [sum(widths[i] for i in row) for row in rows]
    row_height = tiles[0].shape[0] + LABEL_PX
    width, height = max(row_widths), row_height * len(rows)
    figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI)
    figure.patch.set_facecolor(tiles[0][0, 0] / 255.0)
    for number, (row, row_width) in enumerate(zip(rows, row_widths, strict=True)):
        left = (width - row_width) // 2
        bottom = height - (number + 1) * row_height + LABEL_PX
        for i in row:
            figure.figimage(tiles[i], left, bottom)
            x, y = (left + widths[i] / 2.0) / width, bottom / height
            robot, line = standing[i], LABEL_PX / height
            facts = f"{robot.total_mass_kg:.1f} kg, {robot.standing_height_m:.2f} m"
            name = figure.text(x, y - 0.5 * line, robot.name, ha="center")
            name.set(weight="bold", parse_math=False)
            figure.text(x, y - 0.9 * line, facts, ha="center", size=9, color="0.35")
            left += widths[i]
    figure.savefig(path, facecolor=figure.get_facecolor())
