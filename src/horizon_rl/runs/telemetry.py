"""Telemetry of a run: what its iterations measured, and where its seconds went.

Nothing that a run learns depends on it. So a damaged line is left out with a warning,
and never stops a run.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from warnings import warn

from horizon_rl.curriculum import Entry
from horizon_rl.runs.lines import CHECKSUM, check_line, is_sealed, parse_json, to_line
from horizon_rl.runs.paths import BUDGET, JOURNAL, METRICS, RESULTS, TIMES, has_policy
from horizon_rl.support.durable import write_file
from horizon_rl.support.errors import InputError, require
from horizon_rl.support.reading import read_lines
from horizon_rl.support.records import decode

T = TypeVar("T")
Line = Mapping[str, Any]
MANY = 10_000
"""Lines that are missing in one place and counted; more are as bad."""


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


class Metrics(NamedTuple):
    """What iterations measured, oldest first."""

    lines: tuple[Line, ...]
    lost: frozenset[int]
    """Numbers of iterations that have no line, or too many; none where damage was said."""
    is_sound: bool
    """Whether no damage was said."""


def read_metrics(
    run: Path, num_bytes: int | None = None, *, alive: bool = False
) -> Metrics:
    """Read what iterations measured; perhaps only the last bytes."""
    file = run / METRICS
    lines, is_sound = _read(file, _check_metrics, num_bytes, alive)
    numbers = [line["number"] for line in lines if type(line.get("number")) is int]
    if numbers and (num_bytes is None or file.stat().st_size <= num_bytes):
        numbers = [0, *numbers]
    gaps = (_between(*pair) for pair in pairwise(numbers)) if is_sound else ()
    return Metrics(tuple(lines), frozenset(chain.from_iterable(gaps)), is_sound)


def _between(before: int, after: int) -> Sequence[int]:
    """Return the numbers that a line skips; its own where it does not go forward."""
    if after <= before:
        return (after,)
    return range(before + 1, min(after, before + MANY))


def read_times(run: Path, *, alive: bool = False) -> tuple[dict[int, PhaseTimes], bool]:
    """Read where the seconds went, by phase, and whether no damage was said.

    Of a phase that ran again, the last.
    """
    lines, is_sound = _read(run / TIMES, _check_times, None, alive)
    return {times.phase: times for times in lines}, is_sound


def warn_of_lost_lines(
    run: Path,
    times: Collection[int],
    metrics: Metrics,
    entries: Sequence[Entry],
    *,
    needs_times: bool,
) -> None:
    """Say which file has lost lines.

    An iteration is noted before its phase is judged, and the times after that. One whose
    gradient was refused has no line: it is the last of a phase that was aborted. With
    `needs_times`, no damage was said, and no process is about to write the last ones.
    """
    count = len(set(range(len(entries))).difference(times))
    if count and needs_times and _is_expected(run / TIMES):
        warn(
            f"{run / TIMES} lacks {count} judged phase(s): lines are missing, or a kill "
            "came before they were written; --minutes does not count these phases",
            stacklevel=2,
        )
    if any(phase >= len(entries) for phase in times):
        warn(
            f"{run / TIMES} has times of phases that the journal lacks: lines are missing "
            f"at its end, and the run goes on from phase {len(entries)}",
            stacklevel=2,
        )
    ends = list(accumulate(entry.evidence.iterations for entry in entries))
    # A phase that a look aborted has episodes, and all its lines.
    refused = {
        end
        for end, entry in zip(ends, entries, strict=True)
        if entry.evidence.aborted and not entry.evidence.episodes
    }
    is_empty = metrics.is_sound and _is_expected(run / METRICS)
    nothing = 0 if is_empty else None
    last = metrics.lines[-1].get("number") if metrics.lines else nothing
    if (
        type(last) is int
        and ends
        and ends[-1] - last > sum(end > last for end in refused)
    ):
        warn(f"{run / METRICS}: lines are missing at its end", stacklevel=2)
    if metrics.lost - refused:
        warn(f"{run / METRICS}: lines are missing or doubled", stacklevel=2)


def _is_expected(file: Path) -> bool:
    """Tell whether a run has that file; a rehearsal and a shipped run may have none."""
    return file.exists() or has_policy(file.parent)


def lacks_checksums(file: Path) -> bool:
    """Tell whether a file has lines, and none of them a checksum."""
    content = file.read_bytes()
    return bool(content) and f'"{CHECKSUM}":'.encode() not in content


def keep_phases(run: Path, entries: Sequence[Entry]) -> float:
    """Drop what is of later phases, or damaged; return the seconds of those kept."""
    for name in (METRICS, TIMES, BUDGET, RESULTS):
        _make_way(run / name)
    (found, is_sound), metrics = read_times(run), read_metrics(run)
    warn_of_lost_lines(run, found, metrics, entries, needs_times=is_sound)
    # Said once: a phase that was killed before it had its times gets a line without any.
    times = [
        found.get(phase)
        or PhaseTimes(phase=phase, train_s=0.0, probe_s=0.0, settle_s=0.0)
        for phase in range(len(entries))
    ]
    kept = [line for line in metrics.lines if line["phase"] < len(entries)]
    for name, lines in ((TIMES, map(asdict, times)), (METRICS, kept)):
        if _is_expected(run / name):
            write_file(run / name, b"".join(map(to_line, lines)))
    return sum(t.total_s for t in times)


def _make_way(file: Path) -> None:
    """Rename what is no file, or cannot be read: the run must be able to write there."""
    if not os.path.lexists(file) or _is_readable(file):
        return
    names = (file.with_name(f"{file.name}.damaged{x}") for x in ("", *range(1, MANY)))
    name = next(name for name in names if not os.path.lexists(name))
    os.rename(file, name)
    warn(f"{file} cannot be read: it is {name.name} now", stacklevel=3)


def _is_readable(file: Path) -> bool:
    return file.is_file() and os.access(file, os.R_OK)


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
    file: Path, check: Callable[[dict[str, Any]], T], num_bytes: int | None, alive: bool
) -> tuple[list[T], bool]:
    """Read the sound lines of a file, and whether all are; a warning counts the others.

    Args:
        file: May be missing.
        check: Makes what is wanted of a line, or refuses it.
        num_bytes: Read only the last ones, without a line that they cut.
        alive: The last line may be half written.
    """
    if not _is_readable(file):
        if is_there := os.path.lexists(file):
            warn(f"{file} cannot be read: left out", stacklevel=3)
        return [], not is_there
    with open(file, "rb") as opened:
        first = max(0, file.stat().st_size - num_bytes) if num_bytes else 0
        opened.seek(first)
        lines, torn = read_lines(opened)
    sealed = is_sealed(file.with_name(JOURNAL))
    found, num_damaged = _sound_lines(lines[1:] if first else lines, check, sealed)
    if count := num_damaged + bool(torn and not alive):
        warn(f"{file}: {count} damaged line(s) left out", stacklevel=3)
    return found, not count


def _sound_lines(
    lines: Sequence[bytes], check: Callable[[dict[str, Any]], T], sealed: bool
) -> tuple[list[T], int]:
    records = []
    for line in lines:
        try:
            records.append(parse_json(line, "line"))
        except InputError:
            continue
    # Older versions wrote no checksums; no version wrote a file with some.
    sealed, found = sealed or any(CHECKSUM in record for record in records), []
    for record in records:
        try:
            found.append(check(check_line(record, "line") if sealed else record))
        except InputError:
            continue
    return found, len(lines) - len(found)
