"""Verify all files of a run; what is damaged is named, and the rest is still looked at."""

import warnings
from dataclasses import dataclass
from pathlib import Path

from horizon_rl.curriculum.entry import last_checkpoint, last_commit
from horizon_rl.runs.checkpoints import verify_checkpoint
from horizon_rl.runs.journal import recorded_checkpoints
from horizon_rl.runs.paths import (
    BUDGET,
    CHECKPOINTS,
    INITIAL,
    METRICS,
    RESULTS,
    TIMES,
    checkpoint_folder,
    journal_of,
)
from horizon_rl.runs.read import RunFiles, read_run
from horizon_rl.support.durable import check_directory
from horizon_rl.support.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was found of one kind of file."""

    part: str
    by: str
    """What it was compared with."""
    sound: int
    total: int
    """As many as the journal says there are."""
    problems: tuple[str, ...] = ()
    """What is damaged; a file that was left out on purpose is no problem."""


def verify_run(journal: Path) -> tuple[RunFiles, list[Finding]]:
    """Look at everything that a run holds; a damaged journal is refused at once."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        run = read_run(journal)
    lines = len(run.entries) + 1
    torn = [str(w.message) for w in said if journal.name in str(w.message)]
    damaged = [str(w.message) for w in said if str(w.message) not in torn]
    logs = [
        name for name in (METRICS, TIMES, BUDGET, RESULTS) if (run.path / name).exists()
    ]
    return run, [
        Finding(
            part="journal",
            by="checksums, and every decision from its evidence",
            sound=lines,
            total=lines + len(torn),
            problems=tuple(torn),
        ),
        _verify_checkpoints(run),
        Finding(
            part="evidence",
            by="checksums in the files",
            sound=len(run.evidence),
            total=len(run.entries),
            problems=tuple(run.damaged.values()),
        ),
        Finding(
            part="telemetry",
            by="checksums of lines",
            sound=sum(not any(name in text for text in damaged) for name in logs),
            total=len(logs),
            problems=tuple(damaged),
        ),
    ]


def _verify_checkpoints(run: RunFiles) -> Finding:
    named = recorded_checkpoints(journal_of(run.path))
    problems, sound = [], 0
    # A shipped run keeps none. All others need what they go on from, and what a rollback
    # restores.
    ahead, back = last_checkpoint(run.entries), last_commit(run.entries)
    needed = {ref.name if ref else INITIAL for ref in (ahead, back)}
    is_shipped = not any((run.path / name).exists() for name in (CHECKPOINTS, METRICS))
    for name in named:
        folder = checkpoint_folder(run.path, name)
        try:
            if folder.is_dir():
                verify_checkpoint(folder)
                check_directory(folder)
                sound += 1
            elif name in needed and not is_shipped:
                problems.append(
                    f"{folder} is missing: the run goes on from it, or back to it"
                )
        except InputError as error:
            problems.append(str(error))
    return Finding(
        part=CHECKPOINTS,
        by="digests in the journal",
        sound=sound,
        total=len(named),
        problems=tuple(problems),
    )
