"""`horizon study`: compare training runs from their files alone."""

from collections.abc import Sequence
from pathlib import Path
from warnings import warn

from horizon_rl.cli.common import Terminal, check_outputs, say, split_name, write_json
from horizon_rl.cli.run_flags import StudyCmd
from horizon_rl.policies.shipped import shipped_runs
from horizon_rl.runs.find import find_journals
from horizon_rl.support.errors import InputError, RunError, needs_extra, unknown
from horizon_rl.support.records import encode

with needs_extra("train"):
    from horizon_rl.evaluation.studies.study import study
    from horizon_rl.evaluation.success import Result, read_curve, read_results
    from horizon_rl.runs.read import RunFiles, read_run
    from horizon_rl.show.study_tables import study_tables


def run(cmd: StudyCmd) -> None:
    check_outputs(cmd.figures, cmd.json)
    runs = _read_runs(cmd.runs)
    points = read_curve(cmd.cost_curve) if cmd.cost_curve else []
    found = study(runs, _read_results(cmd.results, runs), points)
    seeds = [(run.name, run.seed) for run in runs if run.seed is not None]
    for name, seed in {pair for pair in seeds if seeds.count(pair) > 1}:
        warn(
            f"runs of '{name}' have the same seed, {seed}: not two seeds", stacklevel=1
        )
    Terminal().print_tables(study_tables(found), markdown=cmd.markdown)
    if cmd.json:
        write_json(cmd.json, encode(found))
    if cmd.figures:
        from horizon_rl.show.study_figures import draw_study

        for path in draw_study(found, runs, cmd.figures):
            say(f"drawn in {path}")
    if found.disagreements:
        raise RunError(
            f"{found.disagreements} phase(s) on record do not follow from their "
            "episodes on file; the table of verdicts lists them"
        )


def _read_runs(named: Sequence[str]) -> list[RunFiles]:
    pairs = [split_name(argument) for argument in named]
    known = shipped_runs()
    journals = find_journals([source for _, source in pairs], known)
    # Shipped runs are not seeds of one method: each goes by its own name.
    shipped = [source if source in known else None for _, source in pairs]
    return [
        read_run(journal, name or own)
        for journal, (name, _), own in zip(journals, pairs, shipped, strict=True)
    ]


def _read_results(named: Sequence[str], runs: Sequence[RunFiles]) -> list[Result]:
    results, names = [], [run.name for run in runs]
    for name, file in map(split_name, named):
        if name and name not in names:
            raise InputError(
                f"--results: {unknown('name', name, dict.fromkeys(names))}"
            )
        results += read_results(Path(file), name)
    return results
