"""Films of a run's commits, as a page shows them."""

import base64
from pathlib import Path

import numpy as np

from horizon_rl.runs.paths import film_files

MAX_FILMS = 6
"""Of a run on a page: the first, the last, and some between."""
MAX_BYTES = 4 << 20
"""Larger files are none of ours."""


def show_films(run: Path) -> dict[str, str]:
    """Return films of a run, as many as a page holds, as addresses of images by phase."""
    files = film_files(run)
    shown = np.linspace(0, len(files) - 1, min(MAX_FILMS, len(files))).round()
    films = {}
    for file in (files[number] for number in shown.astype(int)):
        with open(file, "rb") as opened:
            data = opened.read(MAX_BYTES + 1)
        if data.startswith(b"GIF8") and len(data) <= MAX_BYTES:
            text = base64.b64encode(data).decode()
            films[file.stem] = f"data:image/gif;base64,{text}"
    return films
