"""`horizon status`: how a run is doing, from its files alone."""

from dataclasses import dataclass

from horizon_rl.cli.common import RunArgument, Terminal, print_json
from horizon_rl.policies.shipped import is_shipped_run, shipped_runs, start_of
from horizon_rl.runs.find import find_journal, newest_journal
from horizon_rl.runs.read import read_run
from horizon_rl.show.status_board import print_status
from horizon_rl.support.records import encode


@dataclass(frozen=True, kw_only=True)
class StatusCmd:
    """Say how a run is doing: live, finished, or after a crash."""

    run: RunArgument = None
    json: bool = False
    """Print JSON instead of a board."""


def run(cmd: StatusCmd) -> None:
    journal = find_journal(cmd.run, shipped_runs()) if cmd.run else newest_journal()
    found = read_run(journal, evidence=False, start=start_of(journal.parent))
    if cmd.json:
        print_json(encode(found.summary))
    else:
        is_shipped = is_shipped_run(journal.parent)
        print_status(Terminal(), found.summary, found.journal, is_shipped=is_shipped)
