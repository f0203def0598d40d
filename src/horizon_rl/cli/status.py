"""`horizon status`: how a run is doing, from its files alone."""

import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from horizon_rl.cli.common import Terminal, find_journal, print_json
from horizon_rl.curriculum import (
    BUDGET,
    CHECKPOINTS,
    JOURNAL,
    METRICS,
    TIMES,
    Replay,
    is_locked,
    replay,
)
from horizon_rl.domains import Catalogue
from horizon_rl.durable import read_lines
from horizon_rl.errors import InputError
from horizon_rl.records import decode, encode
from horizon_rl.show.run_summary import Traces
from horizon_rl.show.status_board import print_status
from horizon_rl.show.summarise_run import summarise_run

LOGS = Path("logs")
TAIL_BYTES = 1 << 16
"""The end of metrics.jsonl that is read: the file of a long run is large."""


@dataclass(frozen=True, kw_only=True)
class StatusCmd:
    """Say how a run is doing: live, finished, or after a crash."""

    run: Annotated[
        Path | None,
        tyro.conf.Positional,
        tyro.conf.arg(metavar="[RUN]", help_behavior_hint=""),
    ] = None
    """Directory of a training run or rehearsal, or its journal; without it, the run
    under logs/ that was last written to."""
    json: bool = False
    """Print JSON instead of a board."""


def run(cmd: StatusCmd) -> None:
    journal = find_journal(cmd.run) if cmd.run else _newest_journal()
    # First: a run that ends meanwhile is shown as it was, not as one that stopped.
    traces = _read_traces(journal)
    with warnings.catch_warnings():
        if traces.locked:
            warnings.simplefilter("ignore")  # A line being written is not torn.
        replayed = replay(journal)
    catalogue = _read_catalogue(replayed, journal)
    summary = summarise_run(journal.parent, replayed, traces, catalogue)
    if cmd.json:
        print_json(encode(summary))
    else:
        print_status(Terminal(), summary, replayed, catalogue)


def _newest_journal() -> Path:
    found = LOGS.glob(f"**/{JOURNAL}")
    newest = max(found, key=_last_written, default=None)
    if newest is None:
        raise InputError(
            f"there is no run under {LOGS}/: name one, the directory of a training "
            "run or rehearsal"
        )
    return newest


def _last_written(journal: Path) -> float:
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
        age_s=max(0.0, time.time() - _last_written(journal)),
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
