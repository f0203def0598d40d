"""`horizon pages`: Markdown pages whose tables come from collected records."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from horizon_rl.cli.common import say
from horizon_rl.support.durable import write_file
from horizon_rl.support.errors import InputError, RunError, blame, needs_extra


@dataclass(frozen=True, kw_only=True)
class PagesCmd:
    """Fill the tables of Markdown pages from the records of grids.

    A block begins with <!-- records: FILE.jsonl KIND key=value ... --> and ends with
    <!-- end of records -->; kinds are success, close, coverage, cost, core, diagnostic, glance.
    With figure=FILE.png a block of cost is drawn, too. In place of a file, `models` are
    the policies that come with the package.
    """

    pages: Annotated[
        tuple[Path, ...],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="PAGE.md...", help_behavior_hint=""),
    ]
    """The pages; names of records start from the working directory."""
    check: bool = False
    """Change nothing; fail where a page is not what its records make of it."""


def run(cmd: PagesCmd) -> None:
    if not cmd.pages:
        raise InputError("name at least one page: PAGE.md")
    with needs_extra("train"):
        from horizon_rl.show.pages import draw_figures, fill_page
    from horizon_rl.support.reading import read_text

    stale = []
    for page in cmd.pages:
        with blame(f"cannot read {page}"):
            text = read_text(page)
        filled = fill_page(text, Path.cwd(), str(page))
        if filled != text:
            stale.append(str(page))
            if not cmd.check:
                write_file(page, filled.encode())
                say(f"filled {page}")
        drawn = [] if cmd.check else draw_figures(text, Path.cwd(), str(page))
        for path in drawn:
            say(f"drew {path}")
    if cmd.check and stale:
        raise RunError(f"not what their records make of them: {', '.join(stale)}")
