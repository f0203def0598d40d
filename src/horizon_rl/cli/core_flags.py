"""Flags of `horizon core`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from horizon_rl.evaluation.draws import Draw
from horizon_rl.support.bounds import Share


@dataclass(frozen=True, kw_only=True)
class CoreCmd:
    """Select a core of groups from a grid of experts, pairs and a run of all groups.

    A group is hard where the full run masters its own column less than 90 %. The core
    are the hard groups that gain from a partner, in coverage and success together.
    """

    records: Annotated[
        Path,
        tyro.conf.Positional,
        tyro.conf.arg(metavar="GRID|RECORDS.jsonl"),
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
    """Folder for the matrix, PNG and SVG."""
    json: Path | None = None
    """File to write all numbers to."""
    markdown: bool = False
    """Print the tables as Markdown."""
