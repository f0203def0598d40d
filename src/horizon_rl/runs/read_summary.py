"""Read a run's files, live or not, and summarise them."""

import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

from horizon_rl.domains import Catalogue
from horizon_rl.policies.shipped import record_of
from horizon_rl.runs.journal import Replay, is_locked, replay
from horizon_rl.runs.paths import BUDGET, CHECKPOINTS, METRICS, TIMES
from horizon_rl.runs.summarise import summarise_run
from horizon_rl.runs.summary import RunSummary, Traces
from horizon_rl.support.durable import read_lines
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import decode

TAIL_BYTES = 1 << 16
"""The end of metrics.jsonl that is read: the file of a long run is large."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ReadRun:
    """A run's summary, and what it was made from."""

    summary: RunSummary
    journal: Replay
    catalogue: Catalogue | None
    """None for somebody's own loop."""


def read_summary(journal: Path) -> ReadRun:
    """Summarise the run whose journal it is, as of now."""
    # First: a run that ends meanwhile is shown as it was, not as one that stopped.
    traces = _read_traces(journal)
    with warnings.catch_warnings():
        if traces.locked:
            warnings.simplefilter("ignore")  # A line being written is not torn.
        replayed = replay(journal)
    catalogue = _read_catalogue(replayed, journal)
    summary = summarise_run(journal.parent, replayed, traces, catalogue)
    if (model := record_of(journal.parent)) and model.start:
        # The policy it started from is known by another name since.
        summary = replace(summary, start=f"from {model.start}")
    return ReadRun(summary=summary, journal=replayed, catalogue=catalogue)


def last_written(journal: Path) -> float:
    """Return when a run last wrote a line."""
    files = (journal, journal.with_name(METRICS))
    return max((f.stat().st_mtime for f in files if f.exists()), default=0.0)


def _read_traces(journal: Path) -> Traces:
    folder = journal.parent
    try:
        locked = is_locked(journal)
    except OSError:
        locked = False  # It cannot be read: replay says why.
    checkpoints = folder / CHECKPOINTS
    return Traces(
        locked=locked,
        age_s=max(0.0, time.time() - last_written(journal)),
        times=tuple(read_lines(folder / TIMES)),
        metrics=tuple(read_lines(folder / METRICS, TAIL_BYTES)),
        checkpoints=frozenset(
            path.name
            for path in (checkpoints.iterdir() if checkpoints.is_dir() else ())
            if path.is_dir()
        ),
        budget=next(read_lines(folder / BUDGET), {}),
    )


def _read_catalogue(journal: Replay, path: Path) -> Catalogue | None:
    """Return the catalogue of one of our runs; None for somebody's own loop."""
    context = journal.header.context
    if not ("train" in context or "rehearsal" in context):
        return None
    try:
        return decode(Catalogue, context.get("catalogue"))
    except InputError as error:
        raise InputError(f"{path}:1: {error}") from error
