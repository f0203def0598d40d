"""The journal of a run: a header line, then one JSON line per judged phase.

The line that names a finished checkpoint *is* the commit: a checkpoint directory that
no line names never happened. Lines are only ever appended, each synced to disk before
the run goes on. Replaying them through the method gives the state again, byte for byte.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from warnings import warn

from horizon_rl import __version__
from horizon_rl.curriculum import (
    CheckpointRef,
    Curriculum,
    CurriculumCfg,
    Entry,
    Horizon,
    Method,
    State,
    last_checkpoint,
)
from horizon_rl.curriculum.method import (
    check_is_method,
    make_method,
    name_of,
    settings_of,
)
from horizon_rl.runs.lines import (
    SCHEMA,
    check_schema,
    decode_record,
    parse_json,
    parse_line,
    to_line,
)
from horizon_rl.runs.lock import lock
from horizon_rl.runs.migration import migrate_header
from horizon_rl.runs.paths import INITIAL, JOURNAL, checkpoint_folder
from horizon_rl.support.durable import create_file
from horizon_rl.support.errors import InputError, blame
from horizon_rl.support.reading import MAX_LINE, open_file, read_lines
from horizon_rl.support.records import agree, dumps, encode


@dataclass(frozen=True, kw_only=True)
class Header:
    """The first line: what the run was started with."""

    schema: int
    version: str
    groups: tuple[str, ...]
    method: str
    """Name of the curriculum's method."""
    settings: dict[str, Any]
    """The method's own settings."""
    curriculum: CurriculumCfg
    """Settings that all methods have: gates, budget, ..."""
    context: dict[str, Any]
    """What the run's owner adds: seed, catalogue, learner, ..."""

    def make_method(self) -> Method:
        return make_method(self.method, self.curriculum, self.settings)


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A journal, read and verified."""

    header: Header
    entries: tuple[Entry, ...]
    state: State
    num_bytes: int
    """Bytes of whole lines; what follows is a torn line."""


def committed_folder(run: Path) -> Path | None:
    """Return the checkpoint that the run in a directory would go on from, if it has one.

    The journal decides, not the newest folder: one that no line names never happened.
    """
    if not (run / JOURNAL).exists():
        return None
    named = last_checkpoint(replay(run / JOURNAL).entries)
    folder = checkpoint_folder(run, named.name if named else INITIAL)
    return folder if folder.is_dir() else None


class Journal:
    """A journal open for appending, by one process at a time."""

    def __init__(self, path: Path):
        self.path = path
        with blame(f"cannot open {path}", OSError):
            # Unbuffered: what could not be written must not linger and come later.
            self._file = open(path, "r+b", buffering=0)
        lock(self._file, path)
        self._end = self._file.seek(0, os.SEEK_END)
        self._is_sound = True

    @classmethod
    def create(
        cls,
        path: Path,
        groups: Sequence[str],
        method: Method,
        context: Mapping[str, Any],
    ) -> "Journal":
        """Start a journal; one that exists already is refused, never overwritten."""
        header = Header(
            schema=SCHEMA,
            version=__version__,
            groups=tuple(groups),
            method=name_of(method),
            settings=settings_of(method),
            curriculum=method.cfg,
            context=dict(context),
        )
        try:
            create_file(path, to_line(encode(header)))
        except FileExistsError:
            raise InputError(
                f"{path} already holds a run: resume it, or name another"
            ) from None
        return cls(path)

    @classmethod
    def resume(cls, path: Path) -> tuple["Journal", Replay]:
        """Open a journal to go on after its last whole line."""
        journal = cls(path)
        try:
            so_far = replay(path)
        except InputError:
            journal.close()
            raise
        journal._cut_back(so_far.num_bytes)
        return journal, so_far

    def append(self, entry: Entry) -> None:
        """Add a line, and return once it is safely on disk.

        If that fails (a full disk, an interrupt), the journal is as it was before.
        """
        if not self._is_sound:
            raise InputError(f"{self.path} could not be restored: resume the run")
        line = to_line(_plain(entry))
        try:
            written = 0
            while written < len(line):
                written += self._file.write(line[written:])
            os.fsync(self._file.fileno())
        except BaseException:
            self._is_sound = False
            self._cut_back(self._end)
            self._is_sound = True
            raise
        self._end += len(line)

    def close(self) -> None:
        self._file.close()

    def _cut_back(self, num_bytes: int) -> None:
        self._file.truncate(num_bytes)
        self._end = self._file.seek(num_bytes)


def _plain(entry: Entry) -> dict[str, Any]:
    """Return an entry as plain data; what only some methods have is left out if empty."""
    record = encode(entry)
    for name in ("probed", "outcomes"):
        if not record["evidence"][name]:
            del record["evidence"][name]
    return record


def read_header(path: Path) -> Header:
    """Read what the journal's run was started with."""
    lines, _ = _read_lines(path)
    return _parse_header(lines[0], f"{path}:1")


def recorded_checkpoints(path: Path) -> dict[str, str]:
    """Return the digests of a run's checkpoints by name, as its journal has them."""
    lines, _ = _read_lines(path)
    header = _parse_header(lines[0], f"{path}:1")
    named = {INITIAL: header.context.get("initial")}
    for number, line in enumerate(lines[1:], start=2):
        where = f"{path}:{number}"
        if checkpoint := parse_line(line, where).get("checkpoint"):
            found = decode_record(CheckpointRef, checkpoint, where)
            named[found.name] = found.digest
    return {name: digest for name, digest in named.items() if digest}


def replay(path: Path, *, alive: bool = False) -> Replay:
    """Read a journal, and derive every decision again from its evidence.

    A torn last line (no newline: the write was cut off) is left out, with a warning
    unless its run is alive and writing it; any other damage is an error that names the
    line.
    """
    lines, torn = _read_lines(path)
    header = _parse_header(lines[0], f"{path}:1")
    method = header.make_method()
    state, entries = method.start(header.groups), []
    for number, line in enumerate(lines[1:], start=2):
        where = f"{path}:{number}"
        state, entry = _verify(state, parse_line(line, where), method, where)
        entries.append(entry)
    if torn and not alive:
        warn(
            f"{path}:{len(lines) + 1}: torn last line dropped ({len(torn)} bytes): "
            "its phase was not committed and runs again",
            stacklevel=2,
        )
    return Replay(
        header=header,
        entries=tuple(entries),
        state=state,
        num_bytes=sum(len(line) + 1 for line in lines),
    )


def _read_lines(path: Path) -> tuple[list[bytes], bytes]:
    """Return the whole lines, at least the header, and what follows the last."""
    with blame(f"cannot read {path}", OSError, InputError), open_file(path) as opened:
        lines, torn = read_lines(opened)
    if len(torn) == MAX_LINE:
        raise InputError(f"{path}:{len(lines) + 1}: larger than {MAX_LINE >> 20} MB")
    if not lines:
        raise InputError(f"{path}: empty, or cut off within its first line")
    return lines, torn


def _parse_header(line: bytes, where: str) -> Header:
    # The schema comes first: a newer one may differ in all the rest.
    check_schema(parse_json(line, where), where)
    return decode_record(Header, migrate_header(parse_line(line, where)), where)


def _verify(
    state: State, record: dict[str, Any], method: Method, where: str
) -> tuple[State, Entry]:
    """Step over a line's evidence: what is on record must follow from it.

    Facts, not words: another version may say the same thing better.
    """
    proposal = state.proposal
    if proposal is None:
        raise InputError(f"{where}: a phase on record after the run's end")
    recorded = decode_record(dict[str, Any], record.get("proposal"), where)
    reason = decode_record(str, recorded.get("reason"), where)
    if field := _first_difference(recorded, proposal, method):
        raise InputError(
            f"{where}: the phase on record ({recorded.get('phase')}) is not the one that "
            f"follows from the lines above (another {field}): a line is missing, doubled "
            "or altered"
        )
    # The proposal is of the method's own type.
    proposal = replace(proposal, reason=reason)
    entry = decode_record(Entry, {**record, "proposal": proposal}, where)
    state, decision = method.step(state, entry.evidence)
    if field := _first_difference(encode(entry.decision), decision, method):
        raise InputError(
            f"{where}: the recorded decision does not follow from its evidence "
            f"(another {field})"
        )
    return state, entry


ASIDE = ("reason", "nats")
"""Fields that may be put another way than by an earlier version: they decide nothing."""


def _first_difference(
    recorded: dict[str, Any], derived: Any, method: Method
) -> str | None:
    """Name the first field in which a record differs, but for `ASIDE`."""
    tolerance = getattr(method, "tolerance", 0.0)
    plain = json.loads(dumps(encode(derived)))
    recorded = json.loads(dumps(recorded))
    for key in {**plain, **recorded}:
        theirs, ours = recorded.get(key), plain.get(key)
        if key == "verdict" and theirs and ours:
            theirs, ours = {**theirs, "reason": ""}, {**ours, "reason": ""}
        if key not in ASIDE and not agree(theirs, ours, tolerance):
            return key
    return None


def create_curriculum(
    path: Path,
    groups: Sequence[str],
    method: Method | None = None,
    context: Mapping[str, Any] | None = None,
) -> Curriculum:
    """Start a curriculum whose journal is written at `path`.

    `context` goes into the journal's header: what else a resumed run must know.
    """
    method = Horizon() if method is None else method
    check_is_method(method)
    method.start(groups)  # Refuses what cannot start before anything is written.
    journal = Journal.create(path, groups, method, context or {})
    return Curriculum(groups, method, log=journal)


def resume_curriculum(path: Path) -> Curriculum:
    """Go on with the curriculum whose journal lies at `path`."""
    journal, so_far = Journal.resume(path)
    header = so_far.header
    method = header.make_method()
    return Curriculum(
        header.groups, method, entries=so_far.entries, state=so_far.state, log=journal
    )
