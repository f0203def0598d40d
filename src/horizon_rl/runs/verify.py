"""Verify all files of a run; what is damaged is named, and the rest is still looked at."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from horizon_rl.curriculum.entry import last_checkpoint, last_commit
from horizon_rl.runs import paths
from horizon_rl.runs.checkpoints import verify_checkpoint
from horizon_rl.runs.journal import recorded_checkpoints
from horizon_rl.runs.read import RunFiles, read_run
from horizon_rl.runs.telemetry import lacks_checksums
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
    """What is damaged or missing; what was left out on purpose is no problem."""


def verify_run(
    journal: Path, *, is_shipped: bool = False
) -> tuple[RunFiles, list[Finding]]:
    """Look at everything that a run holds; a damaged journal is refused at once.

    Args:
        journal: Path of the journal.
        is_shipped: The run comes with the package, without weights and metrics. Its
            caller knows by where it lies: what is missing says nothing about why.
    """
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        run = read_run(journal)
    lines = len(run.entries) + 1
    torn = [str(w.message) for w in said if journal.name in str(w.message)]
    damaged = [str(w.message) for w in said if str(w.message) not in torn]
    return run, [
        Finding(
            part="journal",
            by="checksums, and every decision from its evidence",
            sound=lines,
            total=lines + len(torn),
            problems=tuple(torn),
        ),
        _verify_checkpoints(run, is_shipped),
        _verify_evidence(run),
        _verify_telemetry(run, damaged, is_shipped),
    ]


def _verify_evidence(run: RunFiles) -> Finding:
    problems = dict(run.damaged)
    # Only training keeps its episodes; no setting removes them, and shipped runs have
    # them too.
    for phase in range(len(run.entries)) if run.kind == "training" else ():
        if phase not in {**run.evidence, **run.damaged}:
            name = paths.phase_name(phase)
            problems[phase] = f"{paths.EVIDENCE}/{name}.npz is missing"
    return Finding(
        part=paths.EVIDENCE,
        by="checksums in the files",
        sound=len(run.evidence),
        total=len(run.entries),
        problems=tuple(text for _, text in sorted(problems.items())),
    )


def _verify_telemetry(
    run: RunFiles, damaged: Sequence[str], is_shipped: bool
) -> Finding:
    """Look at the files of telemetry; reading has said what is damaged in them."""
    logs = (paths.METRICS, paths.TIMES, paths.BUDGET, paths.RESULTS)
    whole = [name for name in logs if not any(name in text for text in damaged)]
    found = {paths.METRICS: run.metrics, paths.TIMES: run.times}
    # A file that was emptied counts as missing: nothing in it is damaged.
    missing = [
        name
        for name in _expected_logs(run, is_shipped)
        if name in whole and not found[name]
    ]
    there = [name for name in whole if (run.path / name).exists()]
    sound = [name for name in there if name not in missing]
    by = "checksums of lines"
    if old := [name for name in sound if lacks_checksums(run.path / name)]:
        by += f"; none in {', '.join(old)}, of an older version"
    return Finding(
        part="telemetry",
        by=by,
        sound=len(sound),
        total=len(sound) + len(missing) + len(logs) - len(whole),
        problems=(
            *damaged,
            *(f"{run.path / name} is missing or empty" for name in missing),
        ),
    )


def _expected_logs(run: RunFiles, is_shipped: bool) -> list[str]:
    """Return the files of telemetry that the journal implies."""
    if run.kind != "training":
        return []
    # A gradient that is refused leaves no line. A phase has one of times only after the
    # journal's: a kill in between loses it.
    lines = [e for e in run.entries if e.evidence.iterations and e.evidence.episodes]
    expected = [paths.METRICS] if lines and not is_shipped else []
    return expected + ([paths.TIMES] if len(run.entries) > 1 else [])


def _verify_checkpoints(run: RunFiles, is_shipped: bool) -> Finding:
    named = recorded_checkpoints(paths.journal_of(run.path))
    problems, sound = [], 0
    # A shipped run keeps none. Others need what they go on from, and what a rollback
    # restores; but who runs a loop of their own may keep checkpoints elsewhere, or none.
    ahead, back = last_checkpoint(run.entries), last_commit(run.entries)
    needed = {ref.name if ref else paths.INITIAL for ref in (ahead, back)}
    elsewhere = run.kind != "training" and not (run.path / paths.CHECKPOINTS).exists()
    for name in named:
        folder = paths.checkpoint_folder(run.path, name)
        try:
            if folder.is_dir():
                verify_checkpoint(folder)
                check_directory(folder)
                sound += 1
            elif name in needed and not (is_shipped or elsewhere):
                problems.append(
                    f"{folder} is missing: the run goes on from it, or back to it"
                )
        except InputError as error:
            problems.append(str(error))
    return Finding(
        part=paths.CHECKPOINTS,
        by="digests in the journal",
        sound=sound,
        total=len(named),
        problems=tuple(problems),
    )
