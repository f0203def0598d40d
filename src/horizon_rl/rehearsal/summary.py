"""The result of a rehearsal as plain data: the stable `--json` interface."""

from collections import Counter
from typing import Any

from horizon_rl.curriculum.entry import lost_env_steps
from horizon_rl.rehearsal.run import Rehearsal
from horizon_rl.support.records import encode


def summarise(rehearsal: Rehearsal) -> dict[str, Any]:
    """Return counts, levels, coverage and all decisions of a rehearsal."""
    state, entries = rehearsal.curriculum.state, rehearsal.curriculum.entries
    actions = Counter(entry.decision.action for entry in entries)
    events = Counter(e.kind for entry in entries for e in entry.decision.events)
    coverage = rehearsal.catalogue.coverage(state.mastered)
    return {
        "method": rehearsal.cfg.method,
        "seed": rehearsal.cfg.seed,
        "phases": len(entries),
        "commits": actions["commit"],
        "rollbacks": actions["rollback"],
        "boundaries": events["boundary"],
        "ended": state.ended,
        "env_steps": state.env_steps,
        "env_steps_rolled_back": lost_env_steps(entries),
        "difficulty": state.difficulty,
        "levels": state.mastered,
        "coverage": {group: coverage[group] for group in state.mastered},
        "decisions": [encode(entry.decision) for entry in entries],
    }
