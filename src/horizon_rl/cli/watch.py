"""`horizon watch`: a run's page, live while it trains."""

from dataclasses import dataclass
from warnings import warn

from horizon_rl.cli.common import RunArgument
from horizon_rl.runs.find import newest_journal
from horizon_rl.support.addresses import is_loopback
from horizon_rl.support.errors import needs_extra, require

with needs_extra("train"):
    from horizon_rl.cli.report import find_sources
    from horizon_rl.show.report.live import LivePage
    from horizon_rl.show.report.serve import PageServer


@dataclass(frozen=True, kw_only=True)
class WatchCmd:
    """Show a run in the browser while it trains: the report's page, always up to date."""

    run: RunArgument = None
    port: int = 8000
    """Port to listen on; 0 takes any that is free."""
    host: str = "127.0.0.1"
    """Address to listen on; only this machine can read at the default."""


def run(cmd: WatchCmd) -> None:
    require("--port", cmd.port, 0, 65535, whole=True)
    (source,) = find_sources([cmd.run or str(newest_journal().parent)])
    # First: a port that is taken is said at once, before the figures are drawn.
    with PageServer(cmd.host, cmd.port) as server:
        page = LivePage(source)
        server.answers = lambda: page.answers
        if not is_loopback(cmd.host):
            warn(f"whoever can reach {cmd.host} can read this run", stacklevel=1)
        print(f"{source.journal.parent} at {server.url} (Ctrl-C ends)", flush=True)
        page.start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
