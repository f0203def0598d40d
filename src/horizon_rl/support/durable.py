"""Files that survive a crash: written aside, synced, renamed into place."""

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from horizon_rl.support.errors import InputError, blame
from horizon_rl.support.reading import read_bytes

try:
    import fcntl as fcntl
except ImportError:  # No locks there: two processes on one run go unnoticed.
    fcntl = None

ASIDE = ".aside-"
"""Prefix of what is still being written; leftovers may be deleted."""
SUMS = "SHA256SUMS"
"""File of a directory's checksums, as `sha256sum --check` reads them."""


def sync_directory(path: Path) -> None:
    """Make renames and new names in `path` survive a power cut."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_file(path: Path, data: bytes) -> None:
    """Put `data` at `path` whole or not at all, over what may stand there."""
    _write(path, data, os.replace)


def create_file(path: Path, data: bytes) -> None:
    """Put `data` at `path` whole, or raise FileExistsError: one of two may win."""
    _write(path, data, _publish_new)


def _publish_new(aside: Path, path: Path) -> None:
    try:
        os.link(aside, path)
    except FileExistsError:
        raise
    except OSError:
        # No hard links there, as on FAT: who makes the name has won. A crash right here
        # leaves an empty file, which counts as none.
        with _hold(path.parent):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            os.replace(aside, path)


@contextmanager
def _hold(folder: Path) -> Iterator[None]:
    """Wait until nobody else holds a folder: an empty file in it is a leftover then.

    Where there are neither locks nor hard links, two that start a run at the same moment
    may both believe that it is theirs.
    """
    fd = os.open(folder, os.O_RDONLY)
    try:
        if fcntl:
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _write(path: Path, data: bytes, publish: Callable[[Path, Path], None]) -> None:
    aside = _aside(path)
    try:
        with open(aside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        publish(aside, path)
    finally:
        aside.unlink(missing_ok=True)
    sync_directory(path.parent)


def _aside(path: Path) -> Path:
    """Name a place beside `path` that no other process writes to."""
    return path.with_name(f"{ASIDE}{os.getpid()}-{path.name}")


def make_directory(path: Path) -> None:
    """Make a directory that survives a power cut, and those above it."""
    if not path.is_dir():
        make_directory(path.parent)
        path.mkdir(exist_ok=True)
        sync_directory(path.parent)


def remove_aside(folder: Path, *, alone: bool = False) -> None:
    """Delete what writers left that are gone; with `alone`, nobody else writes there."""
    for path in folder.glob(f"{ASIDE}*"):
        writer = re.match(rf"{re.escape(ASIDE)}(\d+)-", path.name)
        if not alone and writer and _is_alive(int(writer[1])):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    """Tell whether another process of that number exists: it may still write."""
    if process == os.getpid():
        return False  # It does one thing at a time.
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True


def write_directory(path: Path, fill: Callable[[Path], object]) -> str:
    """Put a directory at `path` whole or not at all, and return its digest.

    `fill` writes the files into the empty folder it is given; their checksums come
    beside them. A directory that stands at `path` already is replaced: no record names
    it yet.
    """
    make_directory(path.parent)
    aside = _aside(path)
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    try:
        fill(aside)
        lines = (f"{digest}  {name}\n" for name, digest in hash_files(aside).items())
        (aside / SUMS).write_text("".join(lines))
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
    """Return the SHA-256 over the names and contents of the files in `path`.

    Without `SUMS`, which says the same: so it is what versions before it recorded.
    """
    lines = (f"{name} {digest}\n" for name, digest in hash_files(path).items())
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def hash_files(path: Path) -> dict[str, str]:
    """Return the SHA-256 of every file in `path` by name, but for `SUMS` and folders."""
    digests = {}
    for file in sorted(path.iterdir()):
        if file.is_file() and file.name != SUMS:
            with open(file, "rb") as opened:
                digests[file.name] = hashlib.file_digest(opened, "sha256").hexdigest()
    return digests


def check_directory(path: Path) -> bool:
    """Compare a directory with its checksums; False: it has none.

    Raises:
        InputError: A file was changed, added or lost; names it.
    """
    if not (path / SUMS).exists():
        return False
    with blame(str(path / SUMS)):
        lines = read_bytes(path / SUMS).decode(errors="replace").splitlines()
    found = hash_files(path)
    recorded = {name: digest for digest, _, name in (x.partition("  ") for x in lines)}
    for name in sorted({*recorded, *found}):
        if recorded.get(name) != found.get(name):
            raise InputError(
                f"{path / name} is damaged: its checksum is not that in {SUMS}"
            )
    return True


def remove_unnamed(parent: Path, pattern: str, named: Iterable[str]) -> None:
    """Delete cut-off writes: directories of ours in `parent` that no record names.

    Ours are those that `pattern` describes whole, and unfinished ones. What somebody
    else has put there stays.
    """
    keep = set(named)
    for path in list(parent.iterdir()) if parent.exists() else ():
        ours = path.name.startswith(ASIDE) or re.fullmatch(pattern, path.name)
        if ours and path.is_dir() and not path.is_symlink() and path.name not in keep:
            # Out of the way first: what is deleted by half must not go by its name.
            aside = path if path.name.startswith(ASIDE) else _aside(path)
            os.rename(path, aside)
            shutil.rmtree(aside)


def _clear_mark(path: Path, mark: str, ours: Iterable[str]) -> None:
    known = path / mark
    if known.exists() and known.stat().st_size:
        raise InputError(f"{path} already holds a run: resume it, or name another")
    names = {p.name for p in path.iterdir() if not p.name.startswith(ASIDE)}
    if names - {mark, *ours}:
        raise InputError(f"{path} is not empty: name a new directory for the run")
    known.unlink(missing_ok=True)


def make_run_directory(path: Path, mark: str, *ours: str) -> None:
    """Make a directory for a new run; one that holds anything is refused.

    `mark` is the file by which a run is known, `ours` what a start that was cut off may
    have left there; what it had not finished is deleted.
    """
    with blame(f"cannot write to run directory {path}", OSError):
        make_directory(path)
        with _hold(path):
            _clear_mark(path, mark, ours)
        for folder in (path, *(path / name for name in ours)):
            remove_aside(folder)
