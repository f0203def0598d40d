"""`horizon core`: the pairwise search, and the groups that it selects."""

from horizon_rl.cli.common import Terminal, check_outputs, say, write_json
from horizon_rl.cli.run_flags import CoreCmd
from horizon_rl.grid.folder import read_collected
from horizon_rl.support.errors import InputError, needs_extra, unknown
from horizon_rl.support.records import encode

with needs_extra("train"):
    from horizon_rl.grid.core import search_core
    from horizon_rl.show.core_tables import core_figure, core_tables, reach_figure
    from horizon_rl.show.plotting import save_figure


def run(cmd: CoreCmd) -> None:
    check_outputs(cmd.figures, cmd.json)
    by_cell: dict[str, list] = {}
    for record in read_collected(cmd.records):
        cell = "_".join(filter(None, (record["method"], record["setting"])))
        by_cell.setdefault(cell, []).append(record)
    if cmd.cell not in by_cell:
        raise InputError(f"--cell: {unknown('cell', cmd.cell, by_cell)}")
    found = search_core(by_cell[cmd.cell], cmd.severity, cmd.draw, cmd.suite)
    Terminal().print_tables(core_tables(found), markdown=cmd.markdown)
    if cmd.json:
        write_json(cmd.json, {**encode(found), "core": found.core})
    if cmd.figures:
        cmd.figures.mkdir(parents=True, exist_ok=True)
        for name, figure in (("core", core_figure), ("reach", reach_figure)):
            for path in save_figure(figure(found), cmd.figures / name):
                say(f"drawn in {path}")
