"""What lies in a grid's folder.

runs/NAME/             the run, as `horizon train --run` makes it
settings/NAME.toml     its settings: `horizon train --config` starts the same run
logs/NAME.log          what its processes printed
results/NAME.json      what its evaluations found
records.jsonl          one line per run, collected: all that tables and pages need
"""

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from horizon_rl.grid.collect import is_run_record
from horizon_rl.runs.lock import lock
from horizon_rl.runs.paths import has_run, journal_of, last_written
from horizon_rl.runs.read import RunFiles, read_run
from horizon_rl.support.durable import make_directory, remove_aside, write_file
from horizon_rl.support.errors import InputError, RunError, blame
from horizon_rl.support.reading import MAX_ARRAYS, read_bytes
from horizon_rl.support.records import dumps, flatten, loads
from horizon_rl.support.toml_text import to_toml

CHANGEABLE = ("steps", "minutes", "device")
"""Settings that a run may get others of when it is resumed."""
WRITTEN = ("settings", "logs", "results")
"""Folders that the grid itself writes to; runs see to their own."""


@dataclass(frozen=True)
class Asked:
    """What a study asks of a run: what was found for anything else is not its result."""

    settings: Mapping[str, Any]
    """As a record has them, without those that may change."""
    key: Mapping[str, Any]
    """Its budget and evaluations."""

    @classmethod
    def of(cls, settings: Mapping[str, Any], key: Mapping[str, Any]) -> "Asked":
        settings, key = loads(dumps([settings, key]))  # As they come back from files.
        return cls(_firm(settings), key)

    def fits(self, result: Mapping[str, Any]) -> bool:
        """Tell whether a result is of a run with these settings."""
        return _firm(result["record"]["settings"]) == self.settings

    def is_done(self, result: Mapping[str, Any]) -> bool:
        """Tell whether a result is that of the end, trained and evaluated as asked."""
        return self.fits(result) and result["key"] == self.key


class GridFolder:
    """The folder that a grid keeps everything in."""

    def __init__(self, path: Path):
        # Settings name it as it was given: they stay the same where all of it is moved.
        self.given, self.path = path, path.absolute()

    def run(self, name: str) -> Path:
        return self.path / "runs" / name

    def log(self, name: str) -> Path:
        return self.path / "logs" / f"{name}.log"

    @property
    def records(self) -> Path:
        return self.path / "records.jsonl"

    def read_run(self, name: str) -> RunFiles | None:
        """Read a run's files; None where it has not begun."""
        if not has_run(self.run(name)):
            return None
        return read_run(journal_of(self.run(name)), name, evidence=False)

    def read_sound(self, name: str) -> RunFiles | None:
        """Read a run's files; None where they are damaged, too."""
        try:
            return self.read_run(name)
        except (InputError, OSError):
            return None  # Who works on it says what is wrong.

    def num_phases(self, name: str) -> int:
        """Return how many phases a run has judged."""
        run = self.read_sound(name)
        return len(run.entries) if run else 0

    def last_written(self, name: str) -> float | None:
        """Return when a run last wrote a line; None where it has not begun."""
        run = self.run(name)
        return last_written(journal_of(run)) if has_run(run) else None

    def write_settings(self, settings: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep the settings of runs, or of none where one that has begun has others."""
        new: dict[Path, bytes] = {}
        for name, own in settings.items():
            file = self.path / "settings" / f"{name}.toml"
            text = to_toml(own)
            new[file] = text.encode()
            if not file.exists() or (before := read_bytes(file)) == new[file]:
                continue
            if has_run(self.run(name)) and (changed := _changes(file, before, text)):
                raise InputError(
                    f"run {name} in {self.path} was started with other settings: "
                    f"{', '.join(changed)}. Take another --out, or another name"
                )
        for file, data in new.items():
            write_file(file, data)

    def read_result(self, name: str) -> dict[str, Any] | None:
        """Return what a run came to, if it was evaluated; what is damaged counts as not."""
        try:
            found = loads(read_bytes(self.path / "results" / f"{name}.json"))
        except (OSError, InputError):
            return None
        is_whole = isinstance(found, dict) and {"key", "record"} <= found.keys()
        if not is_whole or not is_run_record(record := found["record"]):
            return None
        return found if isinstance(record.get("settings"), dict) else None

    def is_done(self, name: str, asked: Asked) -> bool:
        """Tell whether a run has ended and was evaluated, all as the study has it now."""
        result = self.read_result(name)
        return result is not None and asked.is_done(result)

    def write_result(self, name: str, result: Mapping[str, Any]) -> None:
        write_file(self.path / "results" / f"{name}.json", dumps(result).encode())

    def collect(self, runs: Mapping[str, Asked]) -> int:
        """Put the records of all runs that have one into one file; return how many.

        A run that had another budget or other evaluations is not finished; what is of
        other settings is another run's.
        """
        found = [
            {**result["record"], "finished": asked.is_done(result)}
            for name, asked in runs.items()
            if (result := self.read_result(name)) and asked.fits(result)
        ]
        try:
            write_file(self.records, "".join(dumps(x) + "\n" for x in found).encode())
        except OSError as error:
            raise RunError(f"cannot write {self.records}: {error.strerror}") from error
        return len(found)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Make the folder, and keep other grids out of it.

        What a killed grid had not finished writing is deleted.
        """
        with blame(f"cannot write to --out {self.path}", OSError):
            for part in ("runs", *WRITTEN):
                make_directory(self.path / part)
            file = open(self.path / "lock", "wb", buffering=0)
        with file:
            try:
                lock(file, self.path)
            except InputError as error:
                raise InputError(f"another grid is at work in {self.path}") from error
            for part in ("", *WRITTEN):
                remove_aside(self.path / part, alone=True)
            yield


def _firm(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in settings.items() if k not in CHANGEABLE}


def _changes(file: Path, before: bytes, after: str) -> list[str]:
    """Name the settings that would be others than those in a file."""
    try:
        was, now = (flatten(tomllib.loads(x)) for x in (before.decode(), after))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{file} is damaged ({error}): delete it if the study still has the "
            "settings that this run was started with"
        ) from error
    keys = {**was, **now}.keys() - CHANGEABLE
    return sorted(key for key in keys if was.get(key) != now.get(key))


def read_collected(source: Path) -> list[dict[str, Any]]:
    """Read the collected records of a grid: its folder, or the file itself."""
    file = GridFolder(source).records if source.is_dir() else source
    with blame(f"cannot read records {file}", OSError, InputError):
        records = [loads(line) for line in read_bytes(file, MAX_ARRAYS).splitlines()]
    if not records or not all(map(is_run_record, records)):
        raise InputError(f"{file}: not records; accepted: what `horizon grid` collects")
    return records
