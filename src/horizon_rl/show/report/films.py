"""Films of a run's commits, as a page shows them."""

import base64
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from horizon_rl.runs.paths import film_files

MAX_FILMS = 6
"""Of a run on a page: the first, the last, and some between."""
MAX_BYTES = 4 << 20
"""Larger files are none of ours."""


@dataclass(frozen=True)
class PhaseFilm:
    """A film, and what it is of."""

    title: str
    source: str
    """The film itself, as the address of an image."""


def show_films(run: Path) -> list[PhaseFilm]:
    """Return the films of a run, as many as a page holds."""
    files = film_files(run)
    shown = np.linspace(0, len(files) - 1, min(MAX_FILMS, len(files))).round()
    films = []
    for file in (files[number] for number in shown.astype(int)):
        with open(file, "rb") as opened:
            data = opened.read(MAX_BYTES + 1)
        if data.startswith(b"GIF8") and len(data) <= MAX_BYTES:
            text = base64.b64encode(data).decode()
            films.append(PhaseFilm(file.stem, f"data:image/gif;base64,{text}"))
    return films
