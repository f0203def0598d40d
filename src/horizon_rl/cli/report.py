"""`horizon report`: runs as one page that can be kept and shared."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from horizon_rl.cli.common import say, split_name
from horizon_rl.cli.run_flags import ReportCmd
from horizon_rl.policies.shipped import read_model, shipped_runs
from horizon_rl.runs.find import find_journals, newest_journal, spell_run
from horizon_rl.runs.journal import read_header
from horizon_rl.support.errors import needs_extra
from horizon_rl.support.folders import cache_folder

with needs_extra("train"):
    from horizon_rl.evaluation.success import read_curve
    from horizon_rl.runs.read import name_run
    from horizon_rl.show.report.gather import FailureMap, Source, gather
    from horizon_rl.show.report.write import PAGE, prepare_folder, write_report
    from horizon_rl.show.scores import read_records


def run(cmd: ReportCmd) -> None:
    named = tuple(map(_spell, cmd.runs))
    cmd = replace(cmd, runs=named or (str(newest_journal().parent),))
    kept, beside = _split_runs(cmd.runs)
    sources = find_sources(kept)
    records = beside + [
        record
        for name, file in map(split_name, cmd.results)
        for record in read_records(Path(file), name)
    ]
    points = read_curve(cmd.cost_curve) if cmd.cost_curve else []
    prepare_folder(cmd.out)
    if cmd.evaluate:
        records += _evaluate(sources, records, cmd.evaluate)
    material = gather(
        sources,
        records=records,
        points=points,
        maps=_find_maps(sources, cmd.evaluate),
        command=_command(cmd),
    )
    number = write_report(material, cmd.out)
    say(f"{cmd.out / PAGE}, with {number} figures beside it")


def _split_runs(named: Sequence[str]) -> tuple[Sequence[str], list[dict[str, Any]]]:
    """Tell runs from shipped policies without one, of which only results are shown."""
    shipped = shipped_runs()
    pairs = {argument: split_name(argument) for argument in named}
    bare = {
        argument: (name or text, text)
        for argument, (name, text) in pairs.items()
        if text in shipped and not shipped[text].is_dir()
    }
    kept = [argument for argument in named if argument not in bare]
    if not kept:
        return named, []  # There is nothing to report; it is refused as such.
    return kept, [
        {**result, "policy": name}
        for name, text in bare.values()
        for result in read_model(text).results
    ]


def find_sources(named: Sequence[str]) -> list[Source]:
    """Find the runs that were named."""
    sources, pairs = [], [split_name(argument) for argument in named]
    shipped = shipped_runs()
    journals = find_journals([text for _, text in pairs], shipped)
    for argument, (name, text), journal in zip(named, pairs, journals, strict=True):
        if text in shipped:
            own, model = text, read_model(text)
        else:
            own, model = name_run(read_header(journal), journal.parent), None
        # Commands on the page take a run's directory, not the journal in it.
        text = spell_run(journal.parent, shipped) if Path(text) == journal else text
        sources.append(Source(text, _spell(argument), journal, name or own, model))
    return sources


def _spell(argument: str) -> str:
    """Write [NAME=]RUN so that it means the same run later."""
    return "=".join(filter(None, split_name(argument)))


def _command(cmd: ReportCmd) -> str:
    """Write the command again, as somebody else could give it."""
    parts = ["horizon", "report", *cmd.runs, "--out", str(cmd.out)]
    parts += ["--results", *cmd.results] if cmd.results else []
    parts += ["--cost-curve", str(cmd.cost_curve)] if cmd.cost_curve else []
    parts += ["--evaluate", str(cmd.evaluate)] if cmd.evaluate else []
    return shlex.join(parts)


def _evaluate(
    sources: Sequence[Source], records: Sequence[Any], num_episodes: int
) -> list[dict[str, Any]]:
    from horizon_rl.cli.progress import show_progress
    from horizon_rl.show.report.measure import evaluate, missing

    known = [*records, *(r for source in sources for r in source.results)]
    todo = missing(sources, known)
    with show_progress(2 * len(todo)) as show:
        return list(evaluate(todo, num_episodes, show))


def _find_maps(sources: Sequence[Source], num_episodes: int) -> list[FailureMap]:
    if not (num_episodes or cache_folder().is_dir()):
        return []  # Nothing was ever evaluated here: spare the simulator's import.
    from horizon_rl.cli.progress import show_progress
    from horizon_rl.show.report.measure import find_maps

    with show_progress(len(sources)) as show:
        return find_maps(sources, num_episodes, show)
