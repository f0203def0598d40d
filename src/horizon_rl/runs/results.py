"""What a run came to, measured at its end: its start and its end in one suite."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from warnings import warn

from horizon_rl.runs.lines import parse_line, to_line
from horizon_rl.runs.paths import RESULTS
from horizon_rl.support.bounds import Amount, Bounded, CountOrNone, Share
from horizon_rl.support.durable import write_file
from horizon_rl.support.errors import InputError
from horizon_rl.support.reading import read_bytes
from horizon_rl.support.records import decode, decode_part, encode

Record = Mapping[str, Any]
"""An evaluation, or one column of it, as `horizon eval --json` writes it."""


@dataclass(frozen=True, kw_only=True)
class BeforeAfter:
    """The policy that a run started from, and the one that it came to."""

    checkpoint: str
    """Name of the checkpoint that `after` is of: a run may have gone on since."""
    env_steps: int
    """What the run had spent by then."""
    before: dict[str, Any]
    """An evaluation, as `horizon eval --json` writes it."""
    after: dict[str, Any]
    """Another, in the same scenarios."""

    def __post_init__(self):
        for name in ("before", "after"):
            if not is_record(getattr(self, name)):
                raise InputError(f"{name}: not an evaluation")

    def success(self, column: str) -> tuple[float, float] | None:
        """Return success before and after; None where the column was not run."""
        found = [each["columns"].get(column) for each in (self.before, self.after)]
        if None in found:
            return None
        before, after = (each["success"] for each in found)
        return before, after


@dataclass(frozen=True, kw_only=True)
class ColumnNumbers(Bounded):
    """What tables and figures take from a column; records of old lack some of it."""

    success: Share
    interval: dict[str, Share] | None = None
    close: Share | None = None
    episodes: CountOrNone = 0
    length: Share | None = None
    tracking_error: Amount | None = None
    yaw_error: Amount | None = None
    impossible: Share | None = None
    stand: Share | None = None
    hash: str | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.interval and self.interval.keys() != {"low", "high"}:
            raise InputError("interval: not low and high")


def is_record(record: Any) -> bool:
    """Tell whether it has what a table needs; other fields may be missing."""
    try:
        suite, columns = record["suite"], record["columns"].values()
        for column in columns:
            decode_part(ColumnNumbers, column)
        texts = (record["policy"], suite["name"], suite["hash"])
        texts = (*texts, suite.get("draw", "dev"))
        return (
            len(columns) > 0
            and all(isinstance(text, str) for text in texts)
            and isinstance(suite.get("severity"), int | float | None)
        )
    except (AttributeError, KeyError, TypeError, InputError):
        return False


def write_results(run: Path, found: BeforeAfter) -> None:
    """Keep what was measured with the run; what was kept before is replaced."""
    write_file(run / RESULTS, to_line(encode(found)))


def read_results(run: Path) -> BeforeAfter | None:
    """Return what was measured at a run's end; None: nothing was.

    Nothing depends on it, so a damaged file counts as none, with a warning.
    """
    file = run / RESULTS
    try:
        return decode(BeforeAfter, parse_line(read_bytes(file), "line 1"))
    except FileNotFoundError:
        return None
    except (OSError, InputError) as error:
        warn(f"{file} is damaged ({error}): left out", stacklevel=2)
        return None
