"""Flags of `horizon study`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from horizon_rl.cli.report_flags import RunsArgument


@dataclass(frozen=True, kw_only=True)
class StudyCmd:
    """Compare training runs: cost, coverage, verdicts computed again, diagnostics."""

    runs: RunsArgument
    """Directories of runs, finished or not, their journals, or shipped policies with
    a run of their own. Those of one NAME are the training seeds of one method; without it, a
    run's method is its name."""
    results: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[NAME=]FILE...")] = ()
    """Results of `horizon eval --curve --json`, or of older ones at severity 0.5, matched
    by the policy's name or path. Several of one name are matched in the order of its
    runs."""
    cost_curve: Path | None = None
    """Success of checkpoints on the way, a JSON list of rows with method, seed,
    env_steps and success."""
    figures: Path | None = None
    """Folder for figures, PNG and SVG."""
    json: Path | None = None
    """File to write all numbers to."""
    markdown: bool = False
    """Print the tables as Markdown."""
