"""Files that survive a crash: written aside, synced, renamed into place."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

ASIDE = ".aside-"
"""Prefix of what is still being written; whoever finds one may delete it."""


def sync_directory(path: Path) -> None:
    """Make renames and new names in `path` survive a power cut."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_file(path: Path, data: bytes) -> None:
    """Put `data` at `path` whole or not at all."""
    aside = path.with_name(ASIDE + path.name)
    try:
        with open(aside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def write_directory(path: Path, fill: Callable[[Path], object]) -> str:
    """Put a directory at `path` whole or not at all, and return its digest.

    `fill` writes the files into the empty folder it is given. A directory that stands
    at `path` already is replaced: nobody has named it yet, or it would be kept.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(ASIDE + path.name)
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    try:
        fill(aside)
        for file in sorted(aside.iterdir()):
            with open(file, "rb") as opened:
                os.fsync(opened.fileno())
        sync_directory(aside)
        digest = digest_directory(aside)
        if path.exists():
            shutil.rmtree(path)
        os.rename(aside, path)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    sync_directory(path.parent)
    return digest


def digest_directory(path: Path) -> str:
    """Return the SHA-256 over the names and contents of the files in `path`."""
    total = hashlib.sha256()
    for file in sorted(path.iterdir()):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        total.update(f"{file.name} {content}\n".encode())
    return total.hexdigest()


def remove_unnamed(parent: Path, named: Iterable[str]) -> None:
    """Delete the directories in `parent` that no record names: cut-off writes."""
    keep = set(named)
    for path in parent.iterdir() if parent.exists() else ():
        if path.is_dir() and path.name not in keep:
            shutil.rmtree(path)
