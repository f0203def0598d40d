"""Telemetry of a run: what its iterations measured, and where its seconds went.

Nothing that a run learns depends on it. So a damaged line is left out with a warning,
and never stops a run.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar
from warnings import warn

from horizon_rl.curriculum import Entry
from horizon_rl.runs.lines import CHECKSUM, check_line, parse_json, to_line
from horizon_rl.runs.paths import METRICS, TIMES
from horizon_rl.support.durable import write_file
from horizon_rl.support.errors import InputError, require
from horizon_rl.support.records import decode

T = TypeVar("T")
Line = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class PhaseTimes:
    """Where a phase's seconds went."""

    phase: int
    train_s: float
    """Training, its probes taken out."""
    probe_s: float
    """Probes, at the end and at early looks."""
    settle_s: float
    """Judging, writing the checkpoint and the journal, or restoring."""

    @property
    def parts(self) -> tuple[float, float, float]:
        return self.train_s, self.probe_s, self.settle_s

    @property
    def total_s(self) -> float:
        return sum(self.parts)


def append_line(file: Path, line: Line) -> None:
    """Add a line with its checksum."""
    with open(file, "ab") as opened:
        opened.write(to_line(line))


def read_metrics(
    run: Path, num_bytes: int | None = None, *, alive: bool = False
) -> list[Line]:
    """Read what iterations measured, oldest first; perhaps only the last bytes."""
    if not (run / METRICS).is_file():
        return []
    lines, is_sound = _read(run / METRICS, _check_metrics, num_bytes, alive)
    places = [(line.get("number"), line["phase"]) for line in lines]
    if num_bytes is None or (run / METRICS).stat().st_size <= num_bytes:
        places = [(0, 0), *places]
    # Damaged lines have been said.
    if is_sound and not all(_follows(*pair) for pair in pairwise(places)):
        warn(f"{run / METRICS}: lines are missing or doubled", stacklevel=2)
    return lines


def _follows(before: tuple[Any, int], after: tuple[Any, int]) -> bool:
    """Tell whether a line's number and phase come right after another's.

    The last iteration of a phase counts, but has no line where its gradient was refused.
    """
    numbers = before[0], after[0]
    if not all(type(number) is int for number in numbers):
        return True
    return numbers[1] - numbers[0] in ((1,) if before[1] == after[1] else (1, 2))


def read_times(run: Path, *, alive: bool = False) -> dict[int, PhaseTimes]:
    """Read where the seconds went, by phase; of a phase that ran again, the last."""
    lines, _ = _read(run / TIMES, _check_times, None, alive)
    return {times.phase: times for times in lines}


def warn_of_lost_lines(
    run: Path, times: Iterable[int], metrics: Sequence[Line], entries: Sequence[Entry]
) -> None:
    """Say which file has lost lines at its end.

    An iteration is noted before its phase is judged, and the times after that.
    """
    if any(phase >= len(entries) for phase in times):
        warn(
            f"{run / TIMES} has times of phases that the journal lacks: lines are missing "
            f"at its end, and the run goes on from phase {len(entries)}",
            stacklevel=2,
        )
    last = metrics[-1].get("number") if metrics else None
    done = sum(entry.evidence.iterations for entry in entries)
    # An iteration whose gradient was refused has no line.
    done -= bool(entries and entries[-1].evidence.aborted)
    if type(last) is int and last < done:
        warn(f"{run / METRICS}: lines are missing at its end", stacklevel=2)


def keep_phases(run: Path, entries: Sequence[Entry]) -> float:
    """Drop what is of later phases, or damaged; return the seconds of those kept."""
    found, lines = read_times(run), read_metrics(run)
    warn_of_lost_lines(run, found, lines, entries)
    times = [t for t in found.values() if t.phase < len(entries)]
    metrics = [line for line in lines if line["phase"] < len(entries)]
    for name, lines in ((TIMES, map(asdict, times)), (METRICS, metrics)):
        if (run / name).exists():
            write_file(run / name, b"".join(map(to_line, lines)))
    return sum(t.total_s for t in times)


def _check_metrics(line: dict[str, Any]) -> Line:
    if type(line.get("phase")) is not int:
        raise InputError("no phase")
    return line


def _check_times(line: dict[str, Any]) -> PhaseTimes:
    times = decode(PhaseTimes, line)
    for seconds in times.parts:
        require("seconds", seconds, 0.0)
    return times


def _read(
    file: Path,
    check: Callable[[dict[str, Any]], T],
    num_bytes: int | None,
    alive: bool,
) -> tuple[list[T], bool]:
    """Read the sound lines of a file, and whether all are; a warning counts the others.

    Args:
        file: May be missing.
        check: Makes what is wanted of a line, or refuses it.
        num_bytes: Read only the last ones, without a line that they cut.
        alive: The last line may be half written.
    """
    if not file.is_file():
        return [], True
    with open(file, "rb") as opened:
        first = max(0, file.stat().st_size - num_bytes) if num_bytes else 0
        opened.seek(first)
        *lines, torn = opened.read().split(b"\n")
    found, num_damaged = _sound_lines(lines[1:] if first else lines, check)
    if count := num_damaged + bool(torn and not alive):
        warn(f"{file}: {count} damaged line(s) left out", stacklevel=3)
    return found, not count


def _sound_lines(
    lines: Sequence[bytes], check: Callable[[dict[str, Any]], T]
) -> tuple[list[T], int]:
    records = []
    for line in lines:
        try:
            records.append(parse_json(line, "line"))
        except InputError:
            continue
    # Older versions wrote no checksums; no version wrote a file with some.
    sealed, found = any(CHECKSUM in record for record in records), []
    for record in records:
        try:
            found.append(check(check_line(record, "line") if sealed else record))
        except InputError:
            continue
    return found, len(lines) - len(found)
