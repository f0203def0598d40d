"""What a study costs, before and while it runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from horizon_rl.runs.budget import Budget
from horizon_rl.runs.read import RunFiles


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What runs may spend at most, but for the end of a phase that was begun."""

    env_steps: int
    """Of all runs that have a limit."""
    unlimited: int
    """Runs with no limit of env steps, nor of minutes."""
    run_s: float | None
    """Seconds of all runs, one after the other; None where nobody knows their speed."""
    longest_s: float
    """Seconds of the longest of those whose speed is known."""


def estimate_cost(budgets: Sequence[Budget], steps_per_s: float | None) -> Cost:
    """Add up what runs may spend."""
    seconds = [b.left_s(0, 0.0, steps_per_s) for b in budgets]
    known = [s for s in seconds if s is not None]
    return Cost(
        env_steps=sum(b.steps for b in budgets),
        unlimited=sum(not (b.steps or b.minutes) for b in budgets),
        run_s=sum(known) if len(known) == len(budgets) else None,
        longest_s=max(known, default=0.0),
    )


def measure_speed(runs: Iterable[RunFiles]) -> float | None:
    """Return the env steps a second that runs have had, probes and all; None: none has."""
    steps = seconds = 0.0
    for run in runs:
        timed = run.phase_times()
        steps += sum(e.evidence.env_steps for e in run.entries[: len(timed)])
        seconds += float(timed.sum())
    return steps / seconds if seconds else None
