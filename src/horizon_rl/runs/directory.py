"""The directory of a run that is under way: what it writes, and how it picks up again."""

import io
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from horizon_rl.curriculum import CheckpointRef, Entry, Episodes, last_checkpoint
from horizon_rl.curriculum.entry import last_commit
from horizon_rl.curriculum.evidence import ProbedEpisodes
from horizon_rl.runs import paths
from horizon_rl.runs.telemetry import PhaseTimes as PhaseTimes
from horizon_rl.runs.telemetry import append_line, keep_phases
from horizon_rl.support.durable import (
    digest_directory,
    make_directory,
    make_run_directory,
    remove_aside,
    remove_unnamed,
    write_directory,
    write_file,
)
from horizon_rl.support.errors import InputError


class RunDirectory:
    """Writes everything of a run but its journal."""

    def __init__(self, path: Path):
        self.path = path

    @classmethod
    def create(cls, path: Path) -> "RunDirectory":
        """Make a directory for a new run; one that holds anything is refused."""
        make_run_directory(path, paths.JOURNAL, paths.CHECKPOINTS)
        return cls(path)

    @property
    def journal(self) -> Path:
        return self.path / paths.JOURNAL

    def write_evidence(
        self, phase: int, window: Episodes, probes: Mapping[str, ProbedEpisodes]
    ) -> None:
        """Keep the episodes that a phase is judged by.

        Sizes of bodies are kept as a mask for each, as in `anchor_size:large`.
        """
        arrays: dict[str, Any] = {
            "window_start": window.start.astype(np.int32),
            "window_length": window.length.astype(np.int32),
            "window_error": window.tracking_error.astype(np.float32),
        }
        for name, episodes in probes.items():
            arrays[f"{name}_length"] = episodes.length.astype(np.int32)
            arrays[f"{name}_error"] = episodes.tracking_error.astype(np.float32)
            arrays[f"{name}_return"] = episodes.returns.astype(np.float32)
            for size in () if episodes.size is None else np.unique(episodes.size):
                arrays[f"{name}_size:{size}"] = episodes.size == size
        make_directory(self.path / paths.EVIDENCE)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)
        name = f"{paths.phase_name(phase)}.npz"
        write_file(self.path / paths.EVIDENCE / name, buffer.getvalue())

    def write_metrics(self, line: Mapping[str, Any]) -> None:
        """Note an iteration; a figure that is not finite is noted as null."""
        append_line(self.path / paths.METRICS, _only_finite(line))

    def write_times(self, times: PhaseTimes) -> None:
        append_line(self.path / paths.TIMES, asdict(times))

    def write_checkpoint(
        self, phase: int | None, fill: Callable[[Path], object]
    ) -> CheckpointRef:
        """Write a phase's checkpoint, or None's, the initial one, whole or not at all."""
        name = paths.INITIAL if phase is None else paths.phase_name(phase)
        digest = write_directory(paths.checkpoint_folder(self.path, name), fill)
        return CheckpointRef(name, digest)

    def checkpoint(self, named: CheckpointRef | None) -> Path:
        """Return the folder of a checkpoint on record; None names the initial one."""
        name = named.name if named else paths.INITIAL
        return paths.checkpoint_folder(self.path, name)

    def find_checkpoint(self, checkpoint: CheckpointRef) -> Path:
        """Return a checkpoint's folder; one that is not what was named is refused."""
        folder = self.checkpoint(checkpoint)
        if not folder.is_dir() or digest_directory(folder) != checkpoint.digest:
            raise InputError(f"checkpoint {folder} is missing or damaged: cannot go on")
        return folder

    def pick_up(self, entries: Sequence[Entry], keep: int = 0) -> float:
        """Remove traces of a phase that was not judged; return the seconds of the others.

        What somebody else has put into the directory stays.
        """
        self.keep_checkpoints(entries, keep)
        for folder in ("", paths.CHECKPOINTS, paths.EVIDENCE, paths.FILMS):
            remove_aside(self.path / folder, alone=True)
        return keep_phases(self.path, entries)

    def keep_checkpoints(self, entries: Sequence[Entry], count: int) -> None:
        """Delete the checkpoints of phases but the last `count`; 0 keeps all on record.

        Those that the run goes on from, or would roll back to, always stay.
        """
        named = [entry.checkpoint for entry in entries if entry.checkpoint]
        kept = [*named[-count:], last_checkpoint(entries), last_commit(entries)]
        names = [checkpoint.name for checkpoint in kept if checkpoint]
        remove_unnamed(self.path / paths.CHECKPOINTS, r"phase-\d{5}", names)


def initial_checkpoint(digest: str) -> CheckpointRef:
    """Return the checkpoint from before the first phase."""
    return CheckpointRef(paths.INITIAL, digest)


def copy_record(run: Path, folder: Path) -> None:
    """Copy a run's records, without its weights, into a new folder."""
    folder.mkdir()
    for name in (paths.JOURNAL, paths.TIMES, paths.BUDGET, paths.RESULTS):
        if (run / name).exists():  # A budget that was never changed has no file.
            shutil.copy(run / name, folder / name)
    shutil.copytree(run / paths.EVIDENCE, folder / paths.EVIDENCE)


def _only_finite(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: _only_finite(value) for key, value in data.items()}
    return None if isinstance(data, float) and not isfinite(data) else data
