"""`horizon runs`: the runs at hand, and the checkpoints of one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any
from warnings import warn

import tyro

from horizon_rl.cli.common import Terminal, print_json
from horizon_rl.curriculum import Entry
from horizon_rl.policies.shipped import shipped_runs
from horizon_rl.runs.find import LOGS, find_journal
from horizon_rl.runs.paths import (
    checkpoint_folder,
    has_run,
    journals_under,
    last_written,
)
from horizon_rl.runs.read import RunFiles, read_run
from horizon_rl.show.actions import ACTIONS
from horizon_rl.show.numbers import NONE, show_count
from horizon_rl.show.table import MAX_WORD, Table, tabulate
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import encode

OTHERS = 47
"""Characters of a line for all but a run's name."""
COLUMN = "all"
"""All groups shifted together: what a run's success is told by."""
NOTE = (
    "Level: mean mastered level. Success: before > after, all groups half way to their "
    "limits, as measured at the end. horizon status RUN tells more."
)


@dataclass(frozen=True, kw_only=True)
class RunsCmd:
    """List runs, the last one written to first; of a single run, its checkpoints."""

    place: Annotated[
        str,
        tyro.conf.Positional,
        tyro.conf.arg(metavar="[FOLDER|RUN]", help_behavior_hint=""),
    ] = str(LOGS)
    """A folder with runs in it, the directory of one, or a shipped policy with a run of
    its own; without it, logs/."""
    json: bool = False
    """Print JSON: of runs, what `horizon status --json` tells of each."""


def run(cmd: RunsCmd) -> None:
    place, shipped = Path(cmd.place), shipped_runs()
    is_nowhere = place != LOGS and not place.exists()
    if has_run(place) or cmd.place in shipped or is_nowhere:
        journal = find_journal(cmd.place, shipped)
        _list_checkpoints(read_run(journal, evidence=False), cmd.json)
        return
    journals = sorted(journals_under(place), key=last_written, reverse=True)
    if not journals:
        raise InputError(f"there is no run under {place}: `horizon train` makes one")
    runs = list(filter(None, map(_read, journals)))
    if cmd.json:
        print_json([encode(run.summary) for run in runs])
    else:
        console = Terminal()
        console.print_table(_table(runs, place, console.width))


def _read(journal: Path) -> RunFiles | None:
    try:
        return read_run(journal, evidence=False)
    except InputError as error:
        # One damaged run hides no other.
        warn(str(error), stacklevel=1)
        return None


def _table(runs: Sequence[RunFiles], folder: Path, width: int) -> Table:
    room = max(width - OTHERS, MAX_WORD)

    def name(run: RunFiles) -> str:
        text = str(run.path.relative_to(folder))
        parts = [text] if len(text) <= room else re.split("(?<=/)", text)
        return "\n".join(line for part in parts for line in wrap(part, room))

    return tabulate(
        f"Runs under {folder}",
        runs,
        [
            ("run", name),
            ("standing", lambda run: run.summary.standing),
            ("env\nsteps", lambda run: show_count(run.summary.env_steps)),
            ("level", lambda run: f"{run.summary.difficulty:.2f}"),
            ("success\n%", _success),
            ("last\ncheckpoint", _last_checkpoint),
        ],
        [NOTE],
        align="llrrr",
    )


def _success(run: RunFiles) -> str:
    results = run.end_results
    found = results.success(COLUMN) if results else None
    return " > ".join(f"{100.0 * share:.0f}" for share in found) if found else NONE


def _last_checkpoint(run: RunFiles) -> str:
    kept = run.summary.checkpoint
    return Path(kept.path).name if kept and kept.exists else NONE


def _list_checkpoints(run: RunFiles, as_json: bool) -> None:
    found = [_describe(run, entry) for entry in run.entries if entry.checkpoint]
    if as_json:
        print_json(found)
        return
    kept = [record for record in found if record["exists"]]
    missing = len(found) - len(kept)
    more = "more " if kept else ""
    notes = [f"{missing} {more}on record, which are not kept."] if missing else []
    if kept and run.kind == "rehearsal":
        notes.append("A rehearsal has no weights: none of these is a policy to play.")
    elif kept:
        notes.append("A command that takes a policy takes the path of one as well.")
    table = tabulate(
        f"Checkpoints of {run.path}",
        kept,
        [
            ("checkpoint", lambda c: c["checkpoint"]),
            ("verdict", lambda c: c["verdict"]),
            ("env steps", lambda c: show_count(c["env_steps"])),
            ("level", lambda c: f"{c['level']:.3f}"),
            ("trained", lambda c: c["trained"]),
        ],
        notes,
        align="llrrl",
    )
    Terminal().print_table(table)


def _describe(run: RunFiles, entry: Entry) -> dict[str, Any]:
    """Say what a checkpoint is: as its phase left the run."""
    assert entry.checkpoint is not None
    phase, name = entry.decision.phase, entry.checkpoint.name
    spent = sum(e.evidence.env_steps for e in run.entries[: phase + 1])
    levels = entry.proposal.levels.values()
    return {
        "checkpoint": name,
        "path": str(checkpoint_folder(run.path, name)),
        "exists": name in run.checkpoints,
        "phase": phase,
        "verdict": ACTIONS[entry.decision.action].done,
        "env_steps": spent,
        "level": sum(levels) / max(1, len(levels)),
        "trained": entry.proposal.trial,
    }
