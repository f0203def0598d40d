"""Flags of `horizon grid`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from horizon_rl.support.bounds import Amount, Count, CountOrNone, Positive, Share

ADVANCED = ("worlds_per_gpu", "retries", "steps_per_s", "bring_back")


@dataclass(frozen=True, kw_only=True)
class GridCmd:
    """Train all runs of a study side by side, evaluate them, and collect what they found.

    Where it was stopped, the same command goes on: a run that is done is not repeated.
    """

    study: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="STUDY.toml")]
    """The study: methods, groups, seeds, settings, and what to evaluate."""
    out: Path | None = None
    """Folder for runs, results and records; without it, logs/grid/<name of the study>."""
    only: tuple[str, ...] = ()
    """Runs to take, by patterns of their names, as in 'horizon_*_s0'; without it, all."""
    dry_run: bool = False
    """Print the runs and what they cost, and run nothing."""
    address: Annotated[str | None, tyro.conf.arg(metavar="HOST:PORT|auto")] = None
    """Ray cluster to run on; without it, this machine."""
    workers: Count | None = None
    """Runs side by side on this machine; without it, as many as have cores. On a cluster
    its cores and GPUs decide."""
    cpus: Count = 1
    """Cores of a run."""
    gpus: Share | None = None
    """Share of a GPU that a run takes, 0..1; without it, a GPU each where there are any."""
    worlds_per_gpu: Count | None = None
    """Let shares follow from worlds: a run of this many takes a whole GPU."""
    minutes: Amount = 0.0
    """Stop training after so long, and evaluate what there is; 0: no limit. The same
    command goes on from there."""
    retries: CountOrNone = 3
    """How often a run may die without judging a phase in between before it is given up."""
    steps_per_s: Positive | None = None
    """Env steps a second of one run, for --dry-run; without it, the study's, or what the
    runs in the folder have had."""
    bring_back: bool = False
    """Nodes do not share the folder: train in a node's own, and bring back what is
    written, phase by phase."""
