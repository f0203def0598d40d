"""What lies in a run's directory.

budget.json                 the budget, if it was changed on resuming
journal.jsonl               settings, then one line per judged phase: the run's memory
checkpoints/initial/        everything that learns, before the first phase
checkpoints/phase-00012/    the same after that phase, if it was kept
evidence/phase-00012.npz    the episodes that the phase was judged by
metrics.jsonl               one line per iteration
times.jsonl                 one line per phase: where its seconds went
events.out.tfevents...      metrics and verdicts for TensorBoard

The journal hangs on nothing but the settings, so that a run which was killed and resumed
has the same as one that was not. Clocks are kept apart from it.
"""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from horizon_rl.curriculum import CheckpointRef, Episodes
from horizon_rl.domains import Catalogue
from horizon_rl.runs.journal import read_header
from horizon_rl.runs.paths import BUDGET, CHECKPOINTS, EVIDENCE, JOURNAL, phase_name
from horizon_rl.support.durable import ASIDE, digest_directory, read_lines, write_file
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import decode, dumps
from horizon_rl.task import EpisodeTable
from horizon_rl.training.config import TrainCfg


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a run was started with, beside what the journal's header says itself."""

    train: TrainCfg
    catalogue: Catalogue
    ranks: int
    initial: str
    """Digest of the initial checkpoint."""
    start: str
    """What it started from, in words."""


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
    def total_s(self) -> float:
        return self.train_s + self.probe_s + self.settle_s


def read_context(path: Path) -> Context:
    """Read what the run in `path` was started with."""
    if not (path / JOURNAL).exists():
        raise InputError(f"{path} holds no run to resume: there is no {JOURNAL} in it")
    context = read_header(path / JOURNAL).context
    if "train" not in context:
        raise InputError(f"{path} holds a run, but not of training")
    try:
        found = decode(Context, context)
    except InputError as error:
        raise InputError(f"{path / JOURNAL}:1: {error}") from error
    return replace(found, train=replace(found.train, **_read_budget(path / BUDGET)))


def write_budget(path: Path, cfg: TrainCfg) -> None:
    """Remember the budget that a resumed run was given."""
    budget = {"steps": cfg.steps, "minutes": cfg.minutes}
    write_file(path / BUDGET, dumps(budget).encode())


def _read_budget(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text())
        return {"steps": int(data["steps"]), "minutes": float(data["minutes"])}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"{file} is damaged ({error}): mend or delete it") from error


def checked_folder(path: Path, checkpoint: CheckpointRef) -> Path:
    """Return a checkpoint's folder; one that is not what was named is refused."""
    folder = path / CHECKPOINTS / checkpoint.name
    if not folder.is_dir() or digest_directory(folder) != checkpoint.digest:
        raise InputError(f"checkpoint {folder} is missing or damaged: cannot go on")
    return folder


def write_evidence(
    path: Path, phase: int, window: Episodes, probes: dict[str, EpisodeTable]
) -> None:
    """Keep the episodes that a phase is judged by."""
    arrays: dict[str, Any] = {
        "window_start": window.start.astype(np.int32),
        "window_length": window.length.astype(np.int32),
        "window_error": window.tracking_error.astype(np.float32),
    }
    for name, episodes in probes.items():
        arrays[f"{name}_length"] = episodes.length.astype(np.int32)
        arrays[f"{name}_error"] = episodes.tracking_error.astype(np.float32)
        arrays[f"{name}_return"] = episodes.returns.astype(np.float32)
    (path / EVIDENCE).mkdir(exist_ok=True)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_file(path / EVIDENCE / f"{phase_name(phase)}.npz", buffer.getvalue())


def only_finite(data: Any) -> Any:
    """Replace numbers that are not finite by null: a figure may overflow, JSON may not."""
    if isinstance(data, dict):
        return {key: only_finite(value) for key, value in data.items()}
    return None if isinstance(data, float) and not isfinite(data) else data


def keep_lines(file: Path, keep: Callable[[dict[str, Any]], bool]) -> None:
    """Drop the lines of what will run again."""
    if file.exists():
        kept = "".join(f"{dumps(line)}\n" for line in read_lines(file) if keep(line))
        write_file(file, kept.encode())


def remove_unfinished(path: Path) -> None:
    """Delete files that were being written when the run was killed."""
    for folder in (path, path / EVIDENCE):
        for file in folder.glob(f"{ASIDE}*"):
            file.unlink()
