"""`horizon watch`: a run's page, live while it trains."""

import sys
import time
from pathlib import Path
from warnings import warn

from horizon_rl.cli.common import say
from horizon_rl.cli.run_flags import WatchCmd
from horizon_rl.policies.shipped import shipped_runs
from horizon_rl.runs.find import newest_journal
from horizon_rl.support.addresses import is_loopback
from horizon_rl.support.errors import InputError, needs_extra

with needs_extra("train"):
    from horizon_rl.cli.report import find_sources
    from horizon_rl.show.report.gather import Source
    from horizon_rl.show.report.live import LivePage
    from horizon_rl.show.report.serve import PageServer

WAIT_S = 30.0
"""How long to wait for a run that is not there yet."""


def run(cmd: WatchCmd) -> None:
    source = _wait_for_run(cmd.run)
    # First: a port that is taken is said at once, before the figures are drawn.
    with PageServer(cmd.host, cmd.port) as server:
        page = LivePage(source)
        server.answers = lambda: page.answers
        if not is_loopback(cmd.host):
            warn(f"whoever can reach {cmd.host} can read this run", stacklevel=1)
        say(f"{source.journal.parent} at {server.url} (Ctrl-C ends)", flush=True)
        page.start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


def _wait_for_run(name: str | None) -> Source:
    """Find the run; one that starts a moment later than its watcher is waited for."""
    end, told = time.monotonic() + WAIT_S, False
    while True:
        try:
            (source,) = find_sources([name or str(newest_journal().parent)])
            return source
        except InputError as error:
            named = Path(name).exists() or name in shipped_runs() if name else False
            if named or time.monotonic() > end:
                raise
            if not told:
                say(f"{error}. Waiting {WAIT_S:g} s for it", file=sys.stderr)
                told = True
            time.sleep(0.5)
