"""What several commands share."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from rich.console import Console

from horizon_rl.domains import Catalogue, load_catalogue, paper_catalogue
from horizon_rl.errors import InputError


def read_catalogue(path: Path | None) -> Catalogue:
    """Load the user's catalogue, or the paper's where none is given."""
    return load_catalogue(path) if path else paper_catalogue()


def new_run_path(folder: Path, label: str = "") -> Path:
    """Name a directory for a run by date and time; never one that exists."""
    stamp = datetime.now().strftime("%Y-%m-%d_%H-%M-%S") + (label and f"_{label}")
    names = (stamp if i == 1 else f"{stamp}-{i}" for i in count(1))
    return next(path for name in names if not (path := folder / name).exists())


class Terminal(Console):
    """A console that leaves a reader who stops reading to `main`."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def print_json(data: Any) -> None:
    json.dump(data, sys.stdout, indent=2, allow_nan=False)
    print()


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Say which extra to install where an import inside fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("horizon_rl"):
            raise
        raise InputError(
            f"this needs {error.name}: pip install 'horizon-rl[{extra}]'"
        ) from error
