"""What a rehearsal came to, as plain data: the stable `--json` interface."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from horizon_rl.curriculum import Entry, State
from horizon_rl.domains import Catalogue
from horizon_rl.rehearsal.run import Rehearsal
from horizon_rl.support.records import encode


def summarise(rehearsal: Rehearsal) -> dict[str, Any]:
    """Return counts, levels, coverage and all decisions of a rehearsal."""
    state, entries = rehearsal.curriculum.state, rehearsal.curriculum.entries
    return {
        "method": rehearsal.cfg.method,
        "seed": rehearsal.cfg.seed,
        **count(entries),
        "ended": state.ended,
        "env_steps": state.env_steps,
        "env_steps_rolled_back": sum(
            e.evidence.env_steps for e in entries if not e.decision.keeps_weights
        ),
        "difficulty": state.difficulty,
        "levels": state.mastered,
        "coverage": coverage_of(state, rehearsal.catalogue),
        "decisions": [encode(entry.decision) for entry in entries],
    }


def count(entries: Sequence[Entry]) -> dict[str, int]:
    """Count phases, commits, rollbacks and the boundaries met on the way."""
    actions = Counter(entry.decision.action for entry in entries)
    events = Counter(e.kind for entry in entries for e in entry.decision.events)
    return {
        "phases": len(entries),
        "commits": actions["commit"],
        "rollbacks": actions["rollback"],
        "boundaries": events["boundary"],
    }


def coverage_of(state: State, catalogue: Catalogue) -> dict[str, float]:
    """Return the coverage of every group of the run at its mastered level."""
    levels = state.mastered
    coverage = catalogue.coverage(levels)
    return {group: coverage[group] for group in levels}
