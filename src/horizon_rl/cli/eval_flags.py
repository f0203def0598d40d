"""Flags of `horizon eval`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from horizon_rl.cli.common import CatalogueFlag
from horizon_rl.evaluation.draws import Draw
from horizon_rl.support.bounds import MAX_SCENARIOS, Share, Threads, Within

ADVANCED = (
    *("curve_groups", "explain", "figures", "markdown", "fresh", "threads"),
    *("catalogue", "draw"),
)


@dataclass(frozen=True, kw_only=True)
class EvalCmd:
    """Evaluate policies on frozen scenarios; what was run before comes at once."""

    policies: Annotated[
        tuple[str, ...],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="[NAME=]POLICY...", help_behavior_hint=""),
    ]
    """Names of `horizon models`, runs, the `last` run, checkpoints, .onnx files, Python
    functions (FILE.py:NAME) or `stand`. Those of one NAME are the training seeds of one
    method."""
    suite: str = "ood"
    """ood, compositions, interventions, robots, field, ground, or your own, a .toml file."""
    columns: tuple[str, ...] = ()
    """Columns of the suite to run, as mass,all; without it, all of them. Groups to shift
    together are a column too: mass+com."""
    severity: tuple[Share, ...] = ()
    """Level of the groups that are shifted, 0..1; several give a table each. Without
    it, 1, or what a suite of your own says."""
    draw: Draw = "dev"
    """Which scenarios: dev to tune and compare by, test to publish, once."""
    episodes: Annotated[int, Within(1, MAX_SCENARIOS)] | None = None
    """Scenarios per column, the first ones of each; without it, all: 1024 in the
    built-in suites. The time it takes is in proportion to it."""
    robot: str | None = None
    """Robot to evaluate on: preset, intervention (go2+stilts) or MJCF file; without
    it, go2."""
    curve: bool = False
    """Success against severity 0.25, 0.5, 0.75 and 1, and its area, in place of a suite."""
    curve_groups: tuple[str, ...] = ("core",)
    """Groups that get a curve together beside `all`: core, or names with commas."""
    explain: str | None = None
    """Column of the suite to explain: which values separate failures from successes."""
    figures: Path | None = None
    """Folder for the figures of the curve, or of the explanation, one per group."""
    json: Path | None = None
    """File to write the results to."""
    markdown: bool = False
    """Print the tables as Markdown."""
    stand: bool = True
    """Run the policy that holds the default pose too, the floor of every table."""
    fresh: bool = False
    """Run everything again, and neither use nor keep results on disk."""
    device: str = "auto"
    """cpu, cuda or cuda:1; auto takes a GPU where there is one. Only the CPU repeats
    results to the bit."""
    threads: Threads = 0
    """Threads of the engine on the CPU; 0: as OMP_NUM_THREADS says, else one per core."""
    catalogue: CatalogueFlag = None
