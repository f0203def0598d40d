"""A run as its files tell it: journal, evidence, metrics and times, read and no more."""

import warnings
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from types import UnionType
from typing import Any

import numpy as np

from horizon_rl.curriculum import Entry
from horizon_rl.domains import Catalogue
from horizon_rl.runs.journal import Header, Replay, is_locked, replay
from horizon_rl.runs.paths import BUDGET, EVIDENCE, METRICS, TIMES, phase_name
from horizon_rl.support.durable import read_lines
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import decode

CONTROL_S = 0.02
"""Seconds of a control step; the task's own constant takes torch to import."""

NUMBER = int | float
Arrays = Mapping[str, np.ndarray]
DAMAGE = (
    *(OSError, ValueError, TypeError, AttributeError, EOFError),
    *(NotImplementedError, zipfile.BadZipFile, zlib.error),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class RunFiles:
    """What lies in a run's directory, as far as a study needs it."""

    name: str
    """What it is called: runs of one name are training seeds of one method."""
    path: Path
    journal: Replay
    evidence: Mapping[int, Arrays]
    """Arrays of every phase whose file could be read, as float64."""
    damaged: Mapping[int, str]
    """What is wrong with the files that could not."""
    metrics: tuple[Mapping[str, Any], ...]
    times: tuple[Mapping[str, Any], ...]
    budget: Mapping[str, Any] = field(default_factory=dict)
    """Steps and minutes that it was given when it was last resumed, if it was."""

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self.journal.entries

    @property
    def seed(self) -> int | None:
        return find(_settings(self.journal.header), int, "seed")

    @property
    def label(self) -> str:
        return self.name if self.seed is None else f"{self.name} seed {self.seed}"

    @property
    def longest(self) -> int | None:
        """Control steps of the longest episode; None for somebody's own loop."""
        seconds = find(
            self.journal.header.context, NUMBER, "train", "task", "episode_s"
        )
        return round(seconds / CONTROL_S) if seconds else None

    @property
    def steps_per_iteration(self) -> int | None:
        """Environment steps of an iteration, by all ranks."""
        return steps_per_iteration(self.journal.header.context)

    @property
    def finished(self) -> bool:
        """Whether it is at its end, by itself or by its budget."""
        state = self.journal.state
        settings = {**_settings(self.journal.header), **self.budget}
        steps = find(settings, int, "steps") or 0
        minutes = find(settings, NUMBER, "minutes") or 0.0
        return bool(
            state.ended
            or 0 < steps <= state.env_steps
            or 0.0 < 60.0 * minutes <= self.phase_times().sum()
        )

    def phase_times(self) -> np.ndarray:
        """Return seconds of training, probes and settling, [phases on record, 3]."""
        return phase_times(self.times, len(self.entries))

    def coverage(self) -> dict[str, float | None]:
        """Return the coverage of the run's groups at their mastered levels."""
        mastered = self.journal.state.mastered
        context = self.journal.header.context
        if "catalogue" not in context:
            return dict.fromkeys(mastered)
        try:
            catalogue = decode(Catalogue, context["catalogue"])
        except InputError as error:
            raise InputError(f"{self.path}: its catalogue: {error}") from error
        covered = catalogue.coverage(mastered)
        return {group: covered.get(group) for group in mastered}


def read_run(journal: Path, name: str | None = None) -> RunFiles:
    """Read the run whose journal it is; without a name, its method is its name."""
    folder = journal.parent
    # First, and lines before the journal: a live run may write meanwhile.
    metrics, times = (tuple(read_lines(folder / f)) for f in (METRICS, TIMES))
    with warnings.catch_warnings():
        if journal.is_file() and is_locked(journal):
            warnings.simplefilter("ignore")  # A line being written is not torn.
        replayed = replay(journal)
    evidence, damaged = {}, {}
    for phase in range(len(replayed.entries)):
        file = folder / EVIDENCE / f"{phase_name(phase)}.npz"
        if file.exists():
            try:
                evidence[phase] = _read_arrays(file)
            except DAMAGE as error:
                damaged[phase] = f"{EVIDENCE}/{file.name} cannot be read: {error}"
    return RunFiles(
        name=name or name_run(replayed.header, folder),
        path=folder,
        journal=replayed,
        evidence=evidence,
        damaged=damaged,
        metrics=metrics,
        times=times,
        budget=next(read_lines(folder / BUDGET), {}),
    )


def name_run(header: Header, folder: Path) -> str:
    """Return what a run is called where nobody names it: its method, or its folder."""
    return find(_settings(header), str, "method") or folder.resolve().name


def find(data: Any, kind: type | UnionType, *keys: str) -> Any:
    """Look up a value in nested dicts; None where it is not there, or something else."""
    for key in keys:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data if isinstance(data, kind) else None


def phase_times(lines: Iterable[Mapping[str, Any]], num_phases: int) -> np.ndarray:
    """Return seconds of training, probes and settling, [phases on record, 3].

    A line without its phase in the journal is of a phase that runs again.
    """
    rows = {}
    for line in lines:
        parts = [find(line, NUMBER, key) for key in ("train_s", "probe_s", "settle_s")]
        whole = all(part is not None and isfinite(part) for part in parts)
        if whole and line.get("phase") in range(num_phases):
            rows[line["phase"]] = parts
    return np.array(list(rows.values()), dtype=float).reshape(-1, 3)


def steps_per_iteration(context: Mapping[str, Any]) -> int | None:
    """Return the environment steps of an iteration, by all ranks, if it is training."""
    num_envs = find(context, int, "train", "num_envs")
    num_steps = find(context, int, "train", "learner", "ppo", "num_steps")
    ranks = find(context, int, "ranks")
    return num_envs * num_steps * ranks if num_envs and num_steps and ranks else None


def _settings(header: Header) -> Mapping[str, Any]:
    context = header.context
    return find(context, dict, "train") or find(context, dict, "rehearsal") or {}


def _read_arrays(file: Path) -> Arrays:
    with np.load(file) as arrays:
        return {key: np.asarray(arrays[key], float).ravel() for key in arrays}
