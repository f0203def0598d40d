"""What a training run was started with, from its journal."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from horizon_rl.domains import Catalogue
from horizon_rl.runs.budget import read_budget
from horizon_rl.runs.journal import read_header
from horizon_rl.runs.paths import journal_of
from horizon_rl.support.errors import InputError, blame
from horizon_rl.support.records import decode, encode
from horizon_rl.support.trust import require_trust, trust_code
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
    code: dict[str, str] = field(default_factory=dict)
    """Hashes of the code that the catalogue names, by parameter."""

    def to_record(self) -> dict[str, Any]:
        """Return it as the journal has it."""
        record = encode(self)
        return record if self.code else {k: record[k] for k in record if k != "code"}

    def check_code(self, run: Path, trust: bool) -> None:
        """Refuse code that has changed since, or that is not the user's, unless told."""
        # Only now: flags of `horizon train` must not wait for the simulator.
        from horizon_rl.physics import effect_digests, own_effects

        sources, found = own_effects(self.catalogue), effect_digests(self.catalogue)
        for name, digest in self.code.items():
            if found.get(name) != digest:
                raise InputError(
                    f"{sources.get(name)}, the effect of {name}, has changed since the "
                    f"run began: restore it, or start another run from {run} with --init"
                )
        if trust:
            trust_code(sources.values())
        require_trust(run, sources.values())


def read_context(path: Path) -> Context:
    """Read what the run in `path` was started with, and the budget it was last given."""
    journal = journal_of(path)
    context = read_header(journal).context
    if "train" not in context:
        raise InputError(f"{path} holds a run, but not of training")
    with blame(f"{journal}:1"):
        found = decode(Context, context)
    budget = read_budget(path)
    if budget is None:
        return found
    return replace(found, train=replace(found.train, **encode(budget)))
