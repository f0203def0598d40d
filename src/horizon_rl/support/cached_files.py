"""The files of the cache: how much they take, and which of them may go."""

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from horizon_rl.support.durable import remove_aside

DAY_S = 86_400.0


class CachedFile(NamedTuple):
    """A result on disk."""

    path: Path
    num_bytes: int
    age_s: float
    """Since it was last used."""


def find_cached(folder: Path) -> list[CachedFile]:
    """Return the results in a cache folder, what was used last first."""
    found, now = [], time.time()
    for path in folder.glob("??/[!.]*.npz"):
        with suppress(OSError):  # Another process may delete it now.
            status = path.stat()
            age_s = max(0.0, now - status.st_mtime)
            found.append(CachedFile(path, status.st_size, age_s))
    return sorted(found, key=lambda file: (file.age_s, file.path))


def choose_unused(
    files: Sequence[CachedFile], days: float | None, megabytes: float | None
) -> list[CachedFile]:
    """Return what may go: unused for so many days, or more than so many megabytes.

    Args:
        files: What was used last first.
        days: None: however old they are.
        megabytes: None: however much they take.
    """
    chosen, total = [], 0
    for file in files:
        total += file.num_bytes
        is_old = days is not None and file.age_s >= days * DAY_S
        if is_old or (megabytes is not None and total > megabytes * 1e6):
            chosen.append(file)
    return chosen


def remove_cached(folder: Path, files: Sequence[CachedFile]) -> None:
    """Delete results, and what writers that are gone have left."""
    for file in files:
        file.path.unlink(missing_ok=True)
    for inner in folder.glob("??"):
        remove_aside(inner)
        with suppress(OSError):  # Not empty.
            inner.rmdir()
