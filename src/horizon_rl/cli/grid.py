"""`horizon grid`: a study's runs, side by side on one machine or on a cluster."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from signal import SIGTERM
from typing import Any

from rich.live import Live

from horizon_rl.cli.common import Terminal
from horizon_rl.cli.grid_flags import GridCmd
from horizon_rl.cli.grid_plan import (
    Checked,
    check_evaluations,
    check_runs,
    choose_runs,
    num_workers,
    print_cost,
)
from horizon_rl.cli.signals import Terminated, graceful_stop
from horizon_rl.cli.train_flags import TrainCmd
from horizon_rl.grid.folder import GridFolder
from horizon_rl.grid.job import Ended, Files, Job, Started, is_finished
from horizon_rl.grid.study_file import StudyFile, load_study
from horizon_rl.grid.transport import pack, unpack
from horizon_rl.runs.find import LOGS
from horizon_rl.runs.summary import RunSummary
from horizon_rl.show.grid_board import GridProgress, grid_board, progress_line
from horizon_rl.support.durable import write_file
from horizon_rl.support.errors import InputError, RunError
from horizon_rl.support.records import dumps, encode, loads
from horizon_rl.support.toml_text import to_toml

DRAW_EVERY_S = 1.0


def run(cmd: GridCmd) -> None:
    _check(cmd)
    study = load_study(cmd.study)
    every = check_runs(study, str(cmd.study))
    runs = choose_runs(every, cmd.only)
    folder = GridFolder(cmd.out or LOGS / "grid" / cmd.study.stem)
    if cmd.dry_run:
        print_cost(cmd, study, runs, folder)
        return
    check_evaluations(study, runs)
    with folder.hold():
        for checked in runs:
            folder.write_settings(checked.plan.name, checked.plan.settings)
        todo = [c for c in runs if not _is_done(c, study, folder)]
        progress = GridProgress(len(runs), len(runs) - len(todo))
        stopped_by = None
        if todo:
            stopped_by = _execute(cmd, study, todo, folder, progress)
        collected = folder.collect(checked.plan.name for checked in every)
    print(
        f"{progress.done} of {progress.total} runs done; {collected} in {folder.records}"
    )
    if progress.done + len(progress.failed) < progress.total:
        print("Stopped. The same command goes on from there.")
    for name, reason in progress.failed.items():
        print(f"failed: {name}: {reason} (log: {folder.log(name)})")
    if stopped_by == SIGTERM:
        raise Terminated
    if progress.failed:
        raise RunError(
            f"{len(progress.failed)} run(s) failed; what they had committed is intact, "
            "and the same command goes on with them"
        )


def _check(cmd: GridCmd) -> None:
    if cmd.worlds_per_gpu is not None and cmd.gpus is not None:
        raise InputError("--gpus or --worlds-per-gpu: the one follows from the other")
    if cmd.workers is not None and cmd.address:
        raise InputError("--workers are this machine's; a cluster has its own")


def _is_done(checked: Checked, study: StudyFile, folder: GridFolder) -> bool:
    result = folder.read_result(checked.plan.name)
    return result is not None and result["key"] == _key(checked, study)


def _key(checked: Checked, study: StudyFile) -> dict[str, Any]:
    """Return what a result of a finished run depends on, beside its settings."""
    evaluate = [encode(plan) for plan in study.evaluate]
    # As it comes back from its file.
    return loads(dumps({"budget": encode(checked.budget), "evaluate": evaluate}))


# Work.


def _execute(
    cmd: GridCmd,
    study: StudyFile,
    todo: Sequence[Checked],
    folder: GridFolder,
    progress: GridProgress,
) -> int | None:
    """Run what is left to do; return the signal that stopped it, if one did."""
    from horizon_rl.grid import executor
    from horizon_rl.grid.collect import make_record

    by_name = {checked.plan.name: checked for checked in todo}
    board = _Board(folder, progress)
    progress.left_steps = sum(checked.budget.steps for checked in todo)
    num_cpus = None if cmd.address else num_workers(cmd) * cmd.cpus
    with (
        executor.connect(cmd.address, num_cpus),
        graceful_stop("stopping: runs end after their iteration") as stop,
        board,
    ):
        jobs = list(_jobs(cmd, study, todo, folder, executor.num_gpus()))
        executor.check_resources(jobs)
        for told in executor.execute(
            jobs,
            retries=cmd.retries,
            num_phases=folder.num_phases,
            files_of=lambda name: pack(folder.run(name), {}),
            is_stopped=stop.is_asked,
        ):
            if told is None:
                board.draw()
                continue
            name, checked = told.name, by_name[told.name]
            match told.message:
                case Started(node):
                    progress.nodes[name] = node
                    progress.left_steps -= checked.budget.steps
                    board.say(f"{name}: under way on {node}")
                case Files(data, log):
                    unpack(data, folder.run(name))
                    write_file(folder.log(name), log)
                case Ended() as ended:
                    progress.nodes.pop(name, None)
                    if told.retried:
                        progress.deaths += 1
                        progress.left_steps += checked.budget.steps
                        board.say(
                            f"{name}: {ended.reason}; it goes on from its last phase"
                        )
                        continue
                    if ended.standing == "failed":
                        progress.failed[name] = ended.reason
                        board.say(f"{name}: failed: {ended.reason}")
                        continue
                    run = folder.read_run(name)
                    finished = is_finished(run, checked.budget)
                    if run and (ended.standing == "finished" or ended.evaluations):
                        record = make_record(
                            checked.plan, run, ended.evaluations, finished=finished
                        )
                        key = _key(checked, study) if finished else None
                        folder.write_result(name, {"key": key, "record": record})
                    progress.done += finished and ended.standing == "finished"
                    board.say(f"{name}: {ended.standing}")
    return stop.signal


def _jobs(
    cmd: GridCmd,
    study: StudyFile,
    todo: Sequence[Checked],
    folder: GridFolder,
    num_gpus: float,
) -> Iterator[Job]:
    deadline = time.time() + 60.0 * cmd.minutes if cmd.minutes else None
    for checked in todo:
        plan, train = checked.plan, checked.cmd
        gpus = _gpu_share(cmd, train, num_gpus)
        yield Job(
            name=plan.name,
            folder=str(folder.run(plan.name)),
            log=str(folder.log(plan.name)),
            config=to_toml({k: v for k, v in plan.settings.items() if k != "device"}),
            groups=checked.groups,
            budget=checked.budget,
            device=train.device,
            catalogue=str(train.catalogue) if train.catalogue else None,
            evaluate=study.evaluate,
            cwd=os.getcwd(),
            cpus=cmd.cpus,
            gpus=gpus,
            deadline=deadline,
            away=cmd.bring_back,
        )


def _gpu_share(cmd: GridCmd, train: TrainCmd, num_gpus: float) -> float:
    """Return how much of a GPU a run takes."""
    if train.device == "cpu":
        return 0.0
    if cmd.worlds_per_gpu:
        return min(1.0, train.cfg.num_envs / cmd.worlds_per_gpu)
    asks = train.device != "auto" or num_gpus > 0
    share = cmd.gpus if cmd.gpus is not None else float(asks)
    if train.device != "auto" and not share:
        raise InputError(f"device {train.device} needs a share of a GPU, not --gpus 0")
    return share


class _Board:
    """What is shown while a grid runs: a board in a terminal, else lines."""

    def __init__(self, folder: GridFolder, progress: GridProgress):
        self._folder, self._progress = folder, progress
        self._console = Terminal(soft_wrap=True)
        self._live = None
        if self._console.is_terminal:
            self._live = Live(console=Terminal(), auto_refresh=False)
        self._known: dict[str, tuple[float, RunSummary]] = {}
        self._drawn = 0.0

    def __enter__(self) -> "_Board":
        (self._live or nullcontext()).__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        self.draw(at_once=True)
        (self._live or nullcontext()).__exit__(*details)

    def say(self, text: str) -> None:
        if self._live:
            self._live.console.print(text)
        else:
            line = progress_line(self._progress, self._summaries())
            self._console.print(f"{text} ({line})")
        self.draw()

    def draw(self, *, at_once: bool = False) -> None:
        now = time.monotonic()
        if self._live and (at_once or now - self._drawn > DRAW_EVERY_S):
            self._drawn = now
            board = grid_board(self._progress, self._summaries())
            self._live.update(board, refresh=True)

    def _summaries(self) -> Mapping[str, RunSummary | None]:
        """Read the runs under way again, those that have written since."""
        for name in self._progress.nodes:
            written = self._folder.last_written(name)
            if written and self._known.get(name, (0.0,))[0] != written:
                run = self._folder.read_run(name)
                if run:
                    self._known[name] = written, run.summary
        return {name: summary for name, (_, summary) in self._known.items()}
