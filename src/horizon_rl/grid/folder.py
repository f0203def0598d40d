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
from pathlib import Path
from typing import Any

from horizon_rl.grid.collect import is_run_record
from horizon_rl.runs.lock import lock
from horizon_rl.runs.paths import has_run, journal_of, last_written
from horizon_rl.runs.read import RunFiles, read_run
from horizon_rl.support.durable import make_directory, remove_aside, write_file
from horizon_rl.support.errors import InputError, RunError
from horizon_rl.support.reading import MAX_ARRAYS, read_bytes
from horizon_rl.support.records import dumps, flatten, loads
from horizon_rl.support.toml_text import to_toml

CHANGEABLE = ("steps", "minutes", "device")
"""Settings that a run may get others of when it is resumed."""
WRITTEN = ("settings", "logs", "results")
"""Folders that the grid itself writes to; runs see to their own."""


class GridFolder:
    """The folder that a grid keeps everything in."""

    def __init__(self, path: Path):
        self.path = path.absolute()

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
        new = {}
        for name in settings:
            file, text = (
                self.path / "settings" / f"{name}.toml",
                to_toml(settings[name]),
            )
            before = read_bytes(file) if file.exists() else None
            if before == text.encode():
                continue
            new[file] = text
            has_begun = before is not None and has_run(self.run(name))
            if has_begun and (changed := _changes(file, before, text)):
                raise InputError(
                    f"run {name} in {self.path} was started with other settings: "
                    f"{', '.join(changed)}. Take another --out, or another name"
                )
        for file, text in new.items():
            write_file(file, text.encode())

    def read_result(self, name: str) -> dict[str, Any] | None:
        """Return what a run came to, if it was evaluated; what is damaged counts as not."""
        try:
            found = loads(read_bytes(self.path / "results" / f"{name}.json"))
        except (OSError, InputError):
            return None
        is_whole = isinstance(found, dict) and isinstance(found.get("key"), dict)
        return found if is_whole and is_run_record(found.get("record")) else None

    def is_done(self, name: str, key: Mapping[str, Any]) -> bool:
        """Tell whether a run has ended and was evaluated, all as the study has it now."""
        found = self.read_result(name)
        return found is not None and found["key"] == key and found["record"]["finished"]

    def write_result(self, name: str, result: Mapping[str, Any]) -> None:
        write_file(self.path / "results" / f"{name}.json", dumps(result).encode())

    def collect(self, keys: Mapping[str, Mapping[str, Any]]) -> int:
        """Put the records of all runs that have one into one file; return how many.

        Args:
            keys: What their results depend on, as the study has it now. A run that had
                another budget or other evaluations is not finished; one of other
                settings is another run.
        """
        found = [
            {**result["record"], "finished": self.is_done(name, key)}
            for name, key in keys.items()
            if (result := self.read_result(name))
            and result["key"].get("settings") == key["settings"]
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
        try:
            for part in ("runs", *WRITTEN):
                make_directory(self.path / part)
            file = open(self.path / "lock", "wb", buffering=0)
        except OSError as error:
            why = error.strerror
            raise InputError(f"cannot write to --out {self.path}: {why}") from error
        with file:
            try:
                lock(file, self.path)
            except InputError as error:
                raise InputError(f"another grid is at work in {self.path}") from error
            for part in ("", *WRITTEN):
                remove_aside(self.path / part, alone=True)
            yield


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
    try:
        records = [loads(line) for line in read_bytes(file, MAX_ARRAYS).splitlines()]
    except (OSError, InputError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read records {file}: {why}") from error
    if not records or not all(map(is_run_record, records)):
        raise InputError(f"{file}: not records; accepted: what `horizon grid` collects")
    return records
