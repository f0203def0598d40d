"""`horizon diagnose`: did the gates of past runs predict progress?"""

from dataclasses import dataclass
from typing import Annotated

import tyro

from horizon_rl.cli.common import Terminal, print_json
from horizon_rl.policies.shipped import shipped_runs
from horizon_rl.runs.find import find_journals
from horizon_rl.runs.journal import replay
from horizon_rl.support.bounds import Count
from horizon_rl.support.errors import needs_extra
from horizon_rl.support.records import encode


@dataclass(frozen=True, kw_only=True)
class DiagnoseCmd:
    """Ask past runs whether their gates predicted progress: the paper's diagnostic."""

    runs: Annotated[
        tuple[str, ...],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="RUN...", help_behavior_hint=""),
    ]
    """Directories of curriculum runs, their journals, or shipped policies with a run
    of their own; all are pooled."""
    horizon: Count = 3
    """Decisions ahead over which the gain of difficulty is taken."""
    json: bool = False
    """Print JSON instead of a table."""


def run(cmd: DiagnoseCmd) -> None:
    with needs_extra("train"):
        from horizon_rl.evaluation.studies.diagnostic import diagnose
        from horizon_rl.show.study_tables import diagnostic_table
    journals = find_journals(cmd.runs, shipped_runs())
    found = diagnose([replay(path) for path in journals], horizon=cmd.horizon)
    if cmd.json:
        print_json(encode(found))
    else:
        Terminal().print_table(diagnostic_table(found))
