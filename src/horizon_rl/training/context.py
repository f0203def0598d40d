"""What a training run was started with, from its journal."""

from dataclasses import dataclass, replace
from pathlib import Path

from horizon_rl.domains import Catalogue
from horizon_rl.runs.budget import read_budget
from horizon_rl.runs.journal import read_header
from horizon_rl.runs.paths import journal_of
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import decode, encode
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


def read_context(path: Path) -> Context:
    """Read what the run in `path` was started with, and the budget it was last given."""
    journal = journal_of(path)
    context = read_header(journal).context
    if "train" not in context:
        raise InputError(f"{path} holds a run, but not of training")
    try:
        found = decode(Context, context)
    except InputError as error:
        raise InputError(f"{journal}:1: {error}") from error
    budget = read_budget(path)
    if budget is None:
        return found
    return replace(found, train=replace(found.train, **encode(budget)))
