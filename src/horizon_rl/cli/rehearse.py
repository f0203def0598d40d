"""`horizon rehearse`: the curriculum against a synthetic learner, in seconds."""

import dataclasses
import sys
import time
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Group
from rich.live import Live

from horizon_rl.cli.common import (
    CatalogueFlag,
    Terminal,
    print_json,
    read_catalogue,
    refuse_changes,
    say,
    warn_of_unread,
)
from horizon_rl.curriculum import check_method
from horizon_rl.curriculum.method import describe
from horizon_rl.rehearsal import (
    Rehearsal,
    RehearsalCfg,
    Row,
    compare,
    read_context,
    summarise,
)
from horizon_rl.rehearsal.compare import EARLY
from horizon_rl.runs.find import new_run_path
from horizon_rl.show.actions import describe_phases, describe_undone
from horizon_rl.show.board import board
from horizon_rl.show.frontier_figure import frontier_figure
from horizon_rl.show.plotting import save_figure
from horizon_rl.show.table import Table
from horizon_rl.support.bounds import Within
from horizon_rl.support.durable import write_file
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import dumps

ADVANCED = ("catalogue", "pace")


@dataclass(frozen=True, kw_only=True)
class RehearseCmd:
    """Rehearse the curriculum against a synthetic learner: no physics, no GPU."""

    cfg: Annotated[RehearsalCfg, tyro.conf.arg(name="")] = field(
        default_factory=RehearsalCfg
    )
    catalogue: CatalogueFlag = None
    run: Path | None = None
    """Directory to keep the run in; without it, logs/rehearsal/<date and time>."""
    resume: bool = False
    """Go on with the run in --run, with the settings it was started with."""
    compare: bool = False
    """Run methods side by side instead, on three learners."""
    methods: str = ""
    """With --compare: which, with commas between them; without it HORIZON, the paper's
    rule, its ablations, the controls, and the peers that are installed."""
    seeds: Annotated[int, Within(1, 1000)] = 5
    """With --compare: seeds to average over."""
    pace: Annotated[float, Within(0.0, 60.0)] = 0.05
    """Seconds to show each phase for, in a terminal; 0 is full speed."""
    json: bool = False
    """Print JSON instead of tables."""


def run(cmd: RehearseCmd) -> None:
    if cmd.compare:
        _compare(cmd)
        return
    rehearsal = _open(cmd)
    if not cmd.json and (about := describe(rehearsal.curriculum.method)):
        say(about)
    try:
        _watch(rehearsal, cmd)
    except KeyboardInterrupt:
        say(
            f"\nGo on with: horizon rehearse --resume --run {rehearsal.run}",
            file=sys.stderr,
        )
        raise
    finally:
        rehearsal.close()
    summary = summarise(rehearsal)
    assert rehearsal.run is not None
    write_file(rehearsal.run / "summary.json", dumps(summary).encode())
    figures = _draw(rehearsal, rehearsal.run)
    if cmd.json:
        print_json(summary)
    else:
        _print_summary(summary, rehearsal, figures)


def _open(cmd: RehearseCmd) -> Rehearsal:
    if not cmd.resume:
        catalogue = read_catalogue(cmd.catalogue)
        path = cmd.run or new_run_path(Path("logs/rehearsal"))
        warn_of_unread(cmd.cfg.method, cmd.cfg.make_method(catalogue), cmd.cfg)
        return Rehearsal.create(cmd.cfg, catalogue, path)
    if cmd.run is None:
        raise InputError("--resume needs --run, the directory of the run to go on with")
    if cmd.catalogue:
        raise InputError("a resumed run keeps its catalogue; leave out --catalogue")
    recorded, _ = read_context(cmd.run)
    refuse_changes(cmd.cfg, RehearsalCfg(), recorded)
    return Rehearsal.resume(cmd.run)


def _watch(rehearsal: Rehearsal, cmd: RehearseCmd) -> None:
    """Run all phases, drawing the board after each where somebody watches."""
    console = Terminal()
    if cmd.json or not console.is_terminal:
        for _ in rehearsal.phases():
            pass
        return
    with Live(_board(rehearsal), console=console, auto_refresh=False) as live:
        for _ in rehearsal.phases():
            live.update(_board(rehearsal), refresh=True)
            time.sleep(cmd.pace)


def _board(rehearsal: Rehearsal) -> Group:
    curriculum = rehearsal.curriculum
    coverage = rehearsal.catalogue.coverage(curriculum.state.mastered)
    return board(curriculum.state, curriculum.entries, coverage, curriculum.cfg)


def _draw(rehearsal: Rehearsal, folder: Path) -> list[Path]:
    """Draw the frontier figure into the run; where matplotlib is missing, say so."""
    groups = tuple(rehearsal.curriculum.state.mastered)
    title = f"Rehearsal: {rehearsal.cfg.method}, seed {rehearsal.cfg.seed}"
    try:
        figure = frontier_figure(rehearsal.curriculum.entries, groups, title)
    except InputError as error:
        say(f"horizon: no figure: {error}", file=sys.stderr)
        return []
    return save_figure(figure, folder / "frontiers")


def _print_summary(
    summary: dict[str, Any], rehearsal: Rehearsal, figures: list[Path]
) -> None:
    console = Terminal()
    if not console.is_terminal:
        console.print(_board(rehearsal))
    entries = rehearsal.curriculum.entries
    console.print(
        f"{describe_phases(entries)}. "
        f"Real phases of this length would cost {summary['env_steps'] / 1e6:.0f} M env "
        f"steps, {describe_undone(entries)}."
    )
    say(f"Run: {rehearsal.run}")
    for path in figures:
        say(f"Figure: {path}")


def _compare(cmd: RehearseCmd) -> None:
    if cmd.resume or cmd.run:
        raise InputError("--compare keeps no run: leave out --run and --resume")
    methods = tuple(filter(None, cmd.methods.split(",")))
    for method in methods:
        check_method(method)
    catalogue = read_catalogue(cmd.catalogue)
    seeds = range(cmd.cfg.seed, cmd.cfg.seed + cmd.seeds)
    console = Terminal(stderr=True)
    rows = []
    with console.status("comparing") as status:
        for row in compare(cmd.cfg, catalogue, seeds, methods):
            rows.append(row)
            status.update(f"comparing: {row.method} on the {row.learner} learner done")
    if cmd.json:
        print_json({"rows": [dataclasses.asdict(row) for row in rows]})
    else:
        Terminal().print_table(_compare_table(rows))


def _compare_table(rows: list[Row]) -> Table:
    lines: list[tuple[str, ...]] = []
    for learner, mine in groupby(rows, lambda row: row.learner):
        lines += [()]
        for k, row in enumerate(mine):
            name = learner if k == 0 else ""
            successes = (row.own, row.baseline, row.early, row.area)
            lines.append(
                (
                    *(name, row.method, f"{row.env_steps / 1e6:.0f}"),
                    *(f"{row.phases:.0f}", f"{row.rollbacks:.0f}"),
                    *(f"{row.level:.2f}", *(f"{x:.0%}" for x in successes)),
                )
            )
    return Table(
        f"Final policies, mean over {rows[0].seeds} seed(s)",
        (
            *("learner", "method", "M steps", "phases", "rollbacks", "level"),
            *("at own", "at 0", "early", "area"),
        ),
        tuple(lines),
        (
            "level: what counts as mastered, passed or not. Then the final policy's "
            "success at its own levels and at level 0. area: with all groups at 0.25, 0.5, "
            f"0.75 and 1, mean of the four; early: that at the env steps of {EARLY} phases. "
            "A clock runs to the budget of phases; the others may stop before.",
        ),
        align="llr",
        keys=2,
    )
