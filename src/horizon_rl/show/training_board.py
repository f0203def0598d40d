"""The board of a training run: frontiers, the phase under way, speed, time left."""

import time
from dataclasses import replace

from rich.console import Group, RenderableType
from rich.text import Text

from horizon_rl.curriculum import Entry
from horizon_rl.show.board import board
from horizon_rl.show.numbers import show_broken
from horizon_rl.show.table import bar
from horizon_rl.training.protocols import Iteration
from horizon_rl.training.run import Run


class TrainingBoard:
    """What a run shows while it trains."""

    def __init__(self, run: Run):
        self._run = run
        self._began = time.perf_counter()
        self._first_steps = run.curriculum.state.env_steps
        self._last: Iteration | None = None
        self._done = 0
        """Iterations of the phase under way."""

    def add(self, event: Iteration | Entry) -> None:
        """Take in what the run has just yielded."""
        if isinstance(event, Iteration):
            self._last, self._done = event, self._done + 1
        else:
            self._done = 0

    def draw(self) -> RenderableType:
        """Draw everything, for a terminal that is redrawn."""
        run, curriculum = self._run, self._run.curriculum
        state = curriculum.state
        if run.ended:
            state = replace(state, proposal=None, ended=run.ended)
        coverage = run.catalogue.coverage(state.mastered)
        frontiers = board(state, curriculum.entries, coverage, curriculum.cfg)
        if run.ended:
            return frontiers
        progress = bar(self._done / run.cfg.iterations, 24)
        progress.append(f" {self._progress()}", style="none")
        return Group(frontiers, Text(), progress, Text(self.figures()))

    def line(self) -> str:
        """Say how far the phase under way is, for a log."""
        proposal = self._run.curriculum.ask()
        assert proposal is not None
        trial = f"phase {proposal.phase}, {proposal.trial}"
        return f"{trial}: {self._progress()}, {self.figures()}"

    def figures(self) -> str:
        """Give speed, what the robots do, and the time left."""
        last = self._last
        if last is None:
            return "filling buffers"
        steps = self._run.learner.steps_per_iteration
        parts = [
            f"{last.env_steps / 1e6:.2f} M env steps",
            f"{steps / (last.collect_s + last.learn_s):,.0f} steps/s",
        ]
        if last.episode_length is not None and last.tracking_error is not None:
            parts.append(
                f"episodes {last.episode_length:.0%} of the longest, "
                f"error {last.tracking_error:.2f} m/s"
            )
        parts.append(show_broken(last.unhealthy, last.overflow))
        elapsed = time.perf_counter() - self._began
        speed = (last.env_steps - self._first_steps) / elapsed
        # Until a budget is spent; the frontiers may be done before.
        left = self._run.budget.left_s(last.env_steps, self._run.spent_s, speed)
        parts.append("no budget set" if left is None else f"{left / 60.0:.1f} min left")
        return ", ".join(filter(None, parts))

    def _progress(self) -> str:
        return f"iteration {self._done} of {self._run.cfg.iterations}"


def verdict_line(entry: Entry) -> str:
    """Say in a line the outcome of a phase."""
    evidence = entry.evidence
    cost = f"{evidence.iterations} iterations, {evidence.env_steps:,} env steps"
    broken = show_broken(evidence.unhealthy, evidence.overflow)
    notes = ", ".join(filter(None, (cost, broken)))
    return f"phase {entry.decision.phase}: {entry.decision.reason} [{notes}]"
