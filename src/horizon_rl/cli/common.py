"""What several commands share."""

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from rich.console import Console

from horizon_rl.domains import Catalogue, load_catalogue, paper_catalogue
from horizon_rl.errors import InputError
from horizon_rl.records import encode


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


def refuse_changes(
    given: Any, default: Any, recorded: Any, allowed: Sequence[str] = ()
) -> None:
    """Refuse settings that differ from a resumed run's, unless they are just defaults.

    Args:
        given: The settings as parsed.
        default: What they are where a flag is left out.
        recorded: What the run was started with.
        allowed: Settings that may change.
    """
    was, usual = _flat(encode(recorded)), _flat(encode(default))
    changed = [
        f"--{key.replace('_', '-')} (is {was.get(key)})"
        for key, value in _flat(encode(given)).items()
        if value not in (usual.get(key), was.get(key)) and key not in allowed
    ]
    if changed:
        raise InputError(
            f"a resumed run keeps its settings; leave out {', '.join(changed)}"
        )


def _flat(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat = {}
    for key, value in data.items():
        inner = isinstance(value, dict)
        flat |= _flat(value, f"{prefix}{key}.") if inner else {f"{prefix}{key}": value}
    return flat
