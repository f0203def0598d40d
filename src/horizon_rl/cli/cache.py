"""`horizon cache`: results of evaluations on disk, and what of them may go."""

from dataclasses import dataclass
from typing import Annotated

from horizon_rl.cli.common import Terminal, print_json
from horizon_rl.show.numbers import show_count, show_duration
from horizon_rl.show.table import Table
from horizon_rl.support.bounds import Within
from horizon_rl.support.cached_files import choose_unused, find_cached, remove_cached
from horizon_rl.support.folders import cache_folder


@dataclass(frozen=True, kw_only=True)
class CacheCmd:
    """Show what evaluations keep on disk, and delete what is old or too much.

    All of it can be computed again. Which code you trust is kept beside it, and stays.
    """

    days: Annotated[float, Within(0.0, 1e5)] | None = None
    """Delete results that were not used for this many days."""
    megabytes: Annotated[float, Within(0.0, 1e9)] | None = None
    """Delete results, those unused longest first, until the rest takes no more."""
    clear: bool = False
    """Delete all results."""
    json: bool = False
    """Print JSON instead of a table."""


def run(cmd: CacheCmd) -> None:
    folder = cache_folder()
    files = find_cached(folder)
    chosen = choose_unused(files, 0.0 if cmd.clear else cmd.days, cmd.megabytes)
    if cmd.clear or cmd.days is not None or cmd.megabytes is not None:
        remove_cached(folder, chosen)
    kept = [file for file in files if file not in set(chosen)]
    data = {
        "folder": str(folder),
        "results": len(kept),
        "bytes": sum(file.num_bytes for file in kept),
        "oldest_s": max((file.age_s for file in kept), default=None),
        "deleted": len(chosen),
        "deleted_bytes": sum(file.num_bytes for file in chosen),
    }
    if cmd.json:
        print_json(data)
        return
    rows = [
        ("folder", data["folder"]),
        ("results", show_count(data["results"])),
        ("size", f"{data['bytes'] / 1e6:,.1f} MB"),
    ]
    if kept:
        rows.append(("unused for at most", show_duration(data["oldest_s"])))
    if chosen:
        rows.append(
            ("deleted", f"{len(chosen)}, {data['deleted_bytes'] / 1e6:,.1f} MB")
        )
    Terminal().print_table(
        Table("Results of evaluations", ("", ""), tuple(rows), align="l")
    )
