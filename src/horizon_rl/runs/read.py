"""A run as its files tell it, live or not: read and nothing else."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from horizon_rl.curriculum import Entry, last_checkpoint
from horizon_rl.domains import Catalogue
from horizon_rl.runs.budget import Budget, read_budget
from horizon_rl.runs.journal import Header, Replay, replay
from horizon_rl.runs.lock import is_locked
from horizon_rl.runs.paths import (
    CHECKPOINTS,
    EVIDENCE,
    JOURNAL,
    last_written,
    phase_name,
)
from horizon_rl.runs.results import BeforeAfter, read_results
from horizon_rl.runs.telemetry import (
    Line,
    PhaseTimes,
    read_metrics,
    read_times,
    warn_of_lost_lines,
)
from horizon_rl.support.errors import InputError, blame
from horizon_rl.support.reading import read_arrays
from horizon_rl.support.records import decode

if TYPE_CHECKING:
    from horizon_rl.runs.summary import RunSummary

CONTROL_S = 0.02
"""Seconds of a control step; the task's own constant takes torch to import."""
TAIL_BYTES = 1 << 16
"""The end of metrics.jsonl that a summary needs: the file of a long run is large."""

NUMBER = int | float
Arrays = Mapping[str, np.ndarray]
RunKind = Literal["training", "rehearsal", "other"]


@dataclass(frozen=True, kw_only=True, eq=False)
class RunFiles:
    """What lies in a run's directory."""

    name: str
    """What it is called: runs of one name are training seeds of one method."""
    path: Path
    journal: Replay
    evidence: Mapping[int, Arrays] = field(default_factory=dict)
    """Arrays of every phase whose file could be read, as float64."""
    damaged: Mapping[int, str] = field(default_factory=dict)
    """What is wrong with the files that could not."""
    metrics: tuple[Line, ...] = ()
    """Lines of metrics.jsonl, oldest first; perhaps only the last ones."""
    times: Mapping[int, PhaseTimes] = field(default_factory=dict)
    """Where the seconds of a phase went, by phase."""
    budget: Budget = field(default_factory=Budget)
    locked: bool = False
    """A live process has the journal open for appending."""
    age_s: float = 0.0
    """Seconds since the run last wrote a line."""
    checkpoints: frozenset[str] = frozenset()
    """Names of the checkpoints' folders."""
    results: BeforeAfter | None = None
    """What it came to, if that was measured."""
    start: str | None = None
    """What it started from, where the journal's word for it has another meaning now."""

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self.journal.entries

    @property
    def end_results(self) -> BeforeAfter | None:
        """What it came to, unless it has gone on since that was measured."""
        last, found = last_checkpoint(self.entries), self.results
        return found if found and last and last.name == found.checkpoint else None

    @property
    def context(self) -> Mapping[str, Any]:
        return self.journal.header.context

    @property
    def kind(self) -> RunKind:
        """`other`: a curriculum in somebody's own training loop."""
        if find(self.context, dict, "train") is not None:
            return "training"
        return "rehearsal" if find(self.context, dict, "rehearsal") else "other"

    @property
    def settings(self) -> Mapping[str, Any]:
        return _settings(self.journal.header)

    @property
    def seed(self) -> int | None:
        return find(self.settings, int, "seed")

    @property
    def label(self) -> str:
        return self.name if self.seed is None else f"{self.name} seed {self.seed}"

    @property
    def longest(self) -> int | None:
        """Control steps of the longest episode; None for somebody's own loop."""
        seconds = find(self.context, NUMBER, "train", "task", "episode_s")
        return round(seconds / CONTROL_S) if seconds else None

    @property
    def steps_per_iteration(self) -> int | None:
        """Environment steps of an iteration, by all ranks, if it is training."""
        num_envs = find(self.context, int, "train", "num_envs")
        num_steps = find(self.context, int, "train", "learner", "ppo", "num_steps")
        ranks = find(self.context, int, "ranks")
        known = num_envs and num_steps and ranks
        return num_envs * num_steps * ranks if known else None

    @property
    def spent(self) -> str | None:
        """Which budget judged phases have spent, in words; None while none is."""
        seconds = float(self.phase_times().sum())
        return self.budget.spent(self.journal.state.env_steps, seconds)

    @property
    def finished(self) -> bool:
        """Whether it is at its end, by itself or by its budget."""
        return bool(self.journal.state.ended or self.spent)

    @cached_property
    def catalogue(self) -> Catalogue | None:
        """The run's groups of parameters; None for somebody's own loop."""
        if "catalogue" not in self.context or self.kind == "other":
            return None
        with blame(f"{self.path / JOURNAL}:1"):
            return decode(Catalogue, self.context["catalogue"])

    @cached_property
    def summary(self) -> "RunSummary":
        """What the run came to so far."""
        from horizon_rl.runs.summarise import summarise

        return summarise(self)

    def phase_times(self) -> np.ndarray:
        """Return seconds of training, probes and settling, [phases on record, 3].

        A line without its phase in the journal is of a phase that runs again.
        """
        rows = [t.parts for t in self.times.values() if t.phase < len(self.entries)]
        return np.array(rows, dtype=float).reshape(-1, 3)

    def coverage(self) -> dict[str, float | None]:
        """Return the coverage of the run's groups at their mastered levels."""
        mastered = self.journal.state.mastered
        covered = self.catalogue.coverage(mastered) if self.catalogue else {}
        return {group: covered.get(group) for group in mastered}


def read_run(
    journal: Path,
    name: str | None = None,
    *,
    evidence: bool = True,
    start: str | None = None,
) -> RunFiles:
    """Read the run whose journal it is; a live run may write meanwhile.

    Args:
        journal: Path of the journal.
        name: What to call the run; without it, its method is its name.
        evidence: Read the episodes behind the verdicts, and all metrics; without them,
            what a summary needs.
        start: See `RunFiles.start`.
    """
    folder = journal.parent
    # Logs before the journal: a run that ends meanwhile is shown as it was, and not as
    # one that stopped.
    locked, age_s = is_locked(journal), max(0.0, time.time() - last_written(journal))
    times, is_sound = read_times(folder, alive=locked)
    tail = None if evidence else TAIL_BYTES
    metrics = read_metrics(folder, tail, alive=locked)
    checkpoints = folder / CHECKPOINTS
    folders = checkpoints.iterdir() if checkpoints.is_dir() else ()
    names = frozenset(path.name for path in folders if path.is_dir())
    replayed = replay(journal, alive=locked)
    needs_times = is_sound and not locked
    warn_of_lost_lines(
        folder, times, metrics, replayed.entries, needs_times=needs_times
    )
    arrays, damaged = _read_evidence(folder, len(replayed.entries) if evidence else 0)
    return RunFiles(
        name=name or name_run(replayed.header, folder),
        path=folder,
        journal=replayed,
        evidence=arrays,
        damaged=damaged,
        metrics=metrics.lines,
        times=times,
        budget=_budget(folder, _settings(replayed.header)),
        locked=locked,
        age_s=age_s,
        checkpoints=names,
        results=read_results(folder),
        start=start,
    )


def name_run(header: Header, folder: Path) -> str:
    """Return what a run is called where nobody names it: its method, or its folder."""
    return find(_settings(header), str, "method") or folder.resolve().name


def find(data: Any, kind: type | UnionType, *keys: str) -> Any:
    """Look up a value in nested dicts; None where it is not there, or something else."""
    for key in keys:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data if isinstance(data, kind) else None


def _budget(folder: Path, settings: Mapping[str, Any]) -> Budget:
    """Return a run's budget: the last one that it was given."""
    given = read_budget(folder)
    steps, minutes = find(settings, int, "steps"), find(settings, NUMBER, "minutes")
    return given or Budget(steps=steps or 0, minutes=minutes or 0.0)


def _settings(header: Header) -> Mapping[str, Any]:
    context = header.context
    return find(context, dict, "train") or find(context, dict, "rehearsal") or {}


def _read_evidence(
    folder: Path, num_phases: int
) -> tuple[dict[int, Arrays], dict[int, str]]:
    """Return the arrays of phases, and what is wrong with files that cannot be read."""
    arrays: dict[int, Arrays] = {}
    damaged: dict[int, str] = {}
    for phase in range(num_phases):
        file = folder / EVIDENCE / f"{phase_name(phase)}.npz"
        if not file.exists():
            continue
        try:
            found = read_arrays(file).items()
            arrays[phase] = {k: np.asarray(v, float).ravel() for k, v in found}
        except (InputError, ValueError, TypeError) as error:
            damaged[phase] = f"{EVIDENCE}/{file.name} cannot be read: {error}"
    return arrays, damaged
