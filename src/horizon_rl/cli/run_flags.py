"""Flags of the commands that read finished runs: core, report, study, watch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from horizon_rl.cli.common import RunArgument
from horizon_rl.evaluation.draws import Draw
from horizon_rl.support.bounds import NumScenarios, Port, Share

RunsArgument = Annotated[
    tuple[str, ...],
    tyro.conf.Positional,
    tyro.conf.arg(metavar="[NAME=]RUN...", help_behavior_hint=""),
]


@dataclass(frozen=True, kw_only=True)
class CoreCmd:
    """Select a core of groups from a grid of experts, pairs and a run of all groups.

    A group is hard where the full run masters its own column less than 90 %. The core
    are the hard groups that gain from a partner, in coverage and success together.
    """

    records: Annotated[
        Path, tyro.conf.Positional, tyro.conf.arg(metavar="GRID|RECORDS.jsonl")
    ]
    """Folder of a finished grid, or the records that it collected."""
    cell: str = "horizon"
    """Runs to look at, where the study has several: METHOD or METHOD_SETTING."""
    suite: str = "ood"
    """Suite of the evaluations."""
    severity: Share = 0.5
    """Level of the shifted groups in the evaluations."""
    draw: Draw = "dev"
    """Scenarios of the evaluations."""
    figures: Path | None = None
    """Folder for the matrix and for how far groups are reached, PNG and SVG."""
    json: Path | None = None
    """File to write all numbers to."""
    markdown: bool = False
    """Print the tables as Markdown."""


@dataclass(frozen=True, kw_only=True)
class ReportCmd:
    """Draw runs as one page, with its figures beside it: nothing else is needed to read it."""

    runs: RunsArgument
    """Directories of runs, finished or not, or shipped policies that have one. Those of
    one NAME are the training seeds of one method. Without any, the run under logs/ that
    was last written to."""
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


@dataclass(frozen=True, kw_only=True)
class WatchCmd:
    """Show a run in the browser while it trains: the report's page, always up to date."""

    run: RunArgument = None
    port: Port = 8000
    """Port to listen on; 0 takes any that is free."""
    host: str = "127.0.0.1"
    """Address to listen on; only this machine can read at the default."""
