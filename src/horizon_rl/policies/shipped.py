"""Policies that come with the package: weights, and a record of how they were made."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from horizon_rl.domains import Catalogue, Levels
from horizon_rl.runs.journal import committed_folder
from horizon_rl.support.errors import InputError, guess, unknown
from horizon_rl.support.records import decode

MODELS = Path(__file__).parent / "models"
STAND = "stand"
"""The policy that holds the default pose."""
RECORD = "model.json"
RUN = "run"
"""Folder with journal and evidence of the run that made a policy, if they are kept."""
CHECKPOINT = "checkpoint.json"
"""File by which a checkpoint's directory is known."""


@dataclass(frozen=True, kw_only=True)
class ModelRecord:
    """How a shipped policy came about, and what it can do."""

    about: str
    """One line for a reader."""
    command: str
    """What trained it."""
    commit: str
    """Version of this package that trained it."""
    hardware: str
    env_steps: int
    minutes: float
    """Of training."""
    seed: int
    start: str = ""
    """What it was trained on from, where its run's word for it has a new meaning."""
    results: tuple[dict[str, Any], ...] = ()
    """Suite results, as `horizon eval --json` writes them."""


def model_names() -> tuple[str, ...]:
    """Name the policies that come with the package."""
    found = (path.parent.name for path in MODELS.glob(f"*/{RECORD}"))
    return tuple(sorted(found))


def model_path(name: str) -> Path:
    """Return the checkpoint directory of a shipped policy."""
    if name not in model_names():
        raise InputError(unknown("model", name, model_names()))
    return MODELS / name


def shipped_runs() -> dict[str, Path]:
    """Return by name where the run behind every shipped policy lies, if it is kept."""
    return {name: model_path(name) / RUN for name in model_names()}


def is_shipped_run(run: Path) -> bool:
    """Tell whether a run is that of a shipped policy, which comes without weights."""
    return run.resolve() in (path.resolve() for path in shipped_runs().values())


def find_checkpoint(source: str) -> Path:
    """Return the checkpoint behind a shipped policy's name, a run or a checkpoint."""
    if source in model_names():
        return model_path(source)
    path = Path(source)
    if (path / CHECKPOINT).exists():
        return path
    found = committed_folder(path) if path.is_dir() else None
    if found is None:
        raise InputError(
            f"no checkpoint '{source}'{guess(source, model_names())} Accepted: a directory of a checkpoint (with "
            f"{CHECKPOINT}) or of a run that has one, or {', '.join(model_names())}"
        )
    return found


def read_model(name: str) -> ModelRecord:
    """Return a shipped policy's record."""
    path = model_path(name) / RECORD
    return decode(ModelRecord, json.loads(path.read_text("utf-8")))


def trained_levels(name: str) -> tuple[Catalogue, Levels]:
    """Return the catalogue of a shipped policy, and the levels that it mastered."""
    path = model_path(name) / CHECKPOINT
    data = json.loads(path.read_text("utf-8"))
    return decode(Catalogue, data["catalogue"]), data["levels"]


def start_of(run: Path) -> str | None:
    """Say what the run of a shipped policy started from, if that has another name now."""
    folder = run.resolve().parent
    if run.name != RUN or folder.parent != MODELS.resolve():
        return None
    start = read_model(folder.name).start
    return f"from {start}" if start else None
