"""Runs on nodes that share no folder: what they have written, as bytes.

The journal goes first on one side and last on the other. So at every moment the copy is
what a kill would have left of the run: all that its journal names is there.
"""

import io
import json
import tarfile
from pathlib import Path, PurePosixPath

from horizon_rl.runs.paths import has_run, journal_of
from horizon_rl.support.durable import ASIDE, write_file
from horizon_rl.support.errors import InputError

LISTING = "files.json"
"""What the run consists of; files that the copy has beyond it go."""


def pack(
    run: Path, sent: dict[str, tuple[int, int]], *, final: bool = False
) -> bytes | None:
    """Return the files that have changed; None while there is no new phase.

    Args:
        run: Directory of the run.
        sent: Size and time of what was sent, by name; updated.
        final: Look at the other files even if there is no new phase.
    """
    if not has_run(run):
        return None
    journal = journal_of(run)
    stamp, line = _stamp(journal), journal.read_bytes()
    if sent.get(journal.name) == stamp and not final:
        return None
    found = [(file.relative_to(run).as_posix(), file) for file in run.rglob("*")]
    files = {
        name: file
        for name, file in sorted(found)
        if file.is_file() and file != journal and ASIDE not in name
    }
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        _add(tar, LISTING, json.dumps([*files, journal.name]).encode())
        for name, file in files.items():
            try:
                mark = _stamp(file)
                if sent.get(name) != mark:
                    _add(tar, f"run/{name}", file.read_bytes())
                    sent[name] = mark
            except FileNotFoundError:
                continue  # It was written aside, and is in its place now.
        _add(tar, f"run/{journal.name}", line)
    sent[journal.name] = stamp
    return stream.getvalue()


def unpack(data: bytes, run: Path) -> None:
    """Bring a copy of a run up to date."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            contents = {
                member.name: opened.read()
                for member in tar
                if (opened := tar.extractfile(member))
            }
        named = set(json.loads(contents.pop(LISTING)))
    except (tarfile.TarError, KeyError, ValueError) as error:
        raise InputError(f"files of {run.name} arrived damaged: {error}") from error
    for name, content in contents.items():
        inside = PurePosixPath(name.removeprefix("run/"))
        if inside.is_absolute() or ".." in inside.parts:
            raise InputError(f"{name} lies outside of the run")
        file = run / inside
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, content)
    for file in [f for f in run.rglob("*") if f.is_file()]:
        if file.relative_to(run).as_posix() not in named:
            file.unlink()


def _stamp(file: Path) -> tuple[int, int]:
    found = file.stat()
    return found.st_size, found.st_mtime_ns


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))
