"""How records lie on disk: a schema version, one JSON object a line, a checksum."""

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from horizon_rl import __version__
from horizon_rl.support.errors import InputError, blame
from horizon_rl.support.reading import MAX_LINE, open_file
from horizon_rl.support.records import decode, dumps, loads

T = TypeVar("T")

SCHEMA = 4
"""Version of a run's lines; grows when they change. 1 has no method in its header; up to
2, `horizon` is the paper's rule; up to 3, telemetry may lack checksums."""

CHECKSUM = "crc"
SEALED = 4
"""Schema from which on a run's other lines have checksums too, not only its journal's."""


def to_line(record: Mapping[str, Any]) -> bytes:
    """Write a record as one line that carries its own checksum."""
    return f"{dumps({**record, CHECKSUM: _checksum(record)})}\n".encode()


def parse_line(line: bytes, where: str) -> dict[str, Any]:
    """Read what `to_line` wrote; an altered line is refused."""
    return check_line(parse_json(line, where), where)


def check_line(record: dict[str, Any], where: str) -> dict[str, Any]:
    """Return a line's record without its checksum, which must fit."""
    recorded = record.pop(CHECKSUM, None)
    try:
        fits = recorded == _checksum(record)
    except (ValueError, RecursionError):  # Half a surrogate pair, deep nesting.
        fits = False
    if not fits:
        raise InputError(f"{where}: checksum does not match: the line was altered")
    return record


def parse_json(text: bytes | str, where: str) -> dict[str, Any]:
    with blame(where):
        record = loads(text)
    if not isinstance(record, dict):
        raise InputError(f"{where}: not a JSON object")
    return record


def check_schema(record: Mapping[str, Any], where: str) -> None:
    schema = record.get("schema")
    if not isinstance(schema, int):
        raise InputError(f"{where}: no schema version: not written by horizon-rl")
    if schema > SCHEMA:
        writer = record.get("version", "of a newer version")
        raise InputError(
            f"{where}: schema {schema}, written by horizon-rl {writer}; this version "
            f"({__version__}) reads up to schema {SCHEMA}: upgrade horizon-rl"
        )


def is_sealed(journal: Path) -> bool:
    """Tell whether the telemetry of a journal's run must have checksums.

    The journal's first line says so, which has one of its own: taking checksums out of
    telemetry makes it damaged, not old.
    """
    try:
        with open_file(journal) as file:
            schema = parse_json(file.readline(MAX_LINE), "").get("schema")
    except (OSError, InputError):
        return False  # Who reads the journal says what is wrong with it.
    return isinstance(schema, int) and schema >= SEALED


def decode_record(cls: type[T], data: Any, where: str) -> T:
    with blame(where):
        return decode(cls, data)


def _checksum(record: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(dumps(record).encode()):08x}"
