"""Flags of `horizon report`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from horizon_rl.support.bounds import NumScenarios

RunsArgument = Annotated[
    tuple[str, ...],
    tyro.conf.Positional,
    tyro.conf.arg(metavar="[NAME=]RUN...", help_behavior_hint=""),
]


@dataclass(frozen=True, kw_only=True)
class ReportCmd:
    """Draw runs as one page, with its figures beside it: nothing else is needed to read it."""

    runs: RunsArgument
    """Directories of runs, finished or not, or shipped policies that have one. Those of
    one NAME are the training seeds of one method."""
    out: Path = Path("report")
    """Folder to write to: index.html, and figures/ as PNG and SVG."""
    results: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[NAME=]FILE...")] = ()
    """Results of `horizon eval --json`, of any suite."""
    cost_curve: Path | None = None
    """Success of checkpoints on the way, a JSON list of rows with method, seed,
    env_steps and success."""
    evaluate: NumScenarios = 0
    """Scenarios per column to evaluate what is missing with, of the curve and of suite
    interventions; 0 shows what is at hand."""
