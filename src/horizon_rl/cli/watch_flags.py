"""Flags of `horizon watch`."""

from dataclasses import dataclass

from horizon_rl.cli.common import RunArgument
from horizon_rl.support.bounds import Port


@dataclass(frozen=True, kw_only=True)
class WatchCmd:
    """Show a run in the browser while it trains: the report's page, always up to date."""

    run: RunArgument = None
    port: Port = 8000
    """Port to listen on; 0 takes any that is free."""
    host: str = "127.0.0.1"
    """Address to listen on; only this machine can read at the default."""
