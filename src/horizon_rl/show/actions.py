"""The outcome of a phase, as terminals, figures and pages show it."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from horizon_rl.curriculum import Entry
from horizon_rl.curriculum.entry import lost_env_steps
from horizon_rl.curriculum.state import Action
from horizon_rl.support.words import counted


class ActionLook(NamedTuple):
    """Words; sign and rich's style in a terminal; marker and colour in a figure."""

    done: str
    sign: str
    style: str
    marker: str
    colour: str


ACTIONS: dict[Action, ActionLook] = {
    "commit": ActionLook("committed", "★", "green", "*", "#1a7f37"),
    "rollback": ActionLook("rolled back", "✗", "red", "x", "#cf222e"),
    "hold": ActionLook("held", "…", "yellow", "o", "#b08800"),
    "retreat": ActionLook("retreated", "↓", "red", "v", "#cf222e"),
}


def describe_phases(entries: Sequence[Entry]) -> str:
    """Count phases by their outcome, in words."""
    counts = Counter(entry.decision.action for entry in entries)
    parts = (f"{counts[a]} {look.done}" for a, look in ACTIONS.items() if counts[a])
    return f"{counted(len(entries), 'phase')}: {', '.join(parts) or 'none judged'}"


def describe_undone(entries: Sequence[Entry]) -> str:
    """Say which share of the env steps rollbacks undid.

    It is more than that of the phases rolled back: a rollback goes to the last commit.
    """
    total = sum(entry.evidence.env_steps for entry in entries)
    lost = lost_env_steps(entries)
    failed = sum(
        entry.evidence.env_steps
        for entry in entries
        if entry.decision.action == "rollback"
    )
    held = ", with the phases held before them" if lost > failed else ""
    return f"{lost / max(total, 1):.0%} undone by rollbacks{held}"
