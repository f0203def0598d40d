"""`horizon grid`: a study's runs, side by side on one machine or on a cluster."""

import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from signal import SIGTERM

from horizon_rl.cli.common import say
from horizon_rl.cli.grid_flags import GridCmd
from horizon_rl.cli.grid_plan import (
    Checked,
    check_evaluations,
    check_files,
    check_runs,
    check_settings,
    choose_runs,
    gpu_share,
    num_workers,
    print_cost,
)
from horizon_rl.cli.grid_screen import GridScreen
from horizon_rl.cli.printing import printing_may_fail
from horizon_rl.cli.stopping import Terminated, graceful_stop
from horizon_rl.grid.collect import make_record
from horizon_rl.grid.execution import Told, Workers, check_resources, execute
from horizon_rl.grid.folder import Asked, GridFolder
from horizon_rl.grid.job import Files, Job, Started, is_finished
from horizon_rl.grid.local import use_this_machine
from horizon_rl.grid.study_file import StudyFile, load_study
from horizon_rl.grid.transport import pack, unpack
from horizon_rl.runs.find import LOGS
from horizon_rl.show.grid_board import GridProgress
from horizon_rl.support.cores import count_cores
from horizon_rl.support.durable import write_file
from horizon_rl.support.errors import InputError, RunError
from horizon_rl.support.records import encode
from horizon_rl.support.toml_text import to_toml


def run(cmd: GridCmd) -> None:
    _check(cmd)
    study = load_study(cmd.study)
    folder = GridFolder(cmd.out or LOGS / "grid" / cmd.study.stem)
    every = check_runs(study, str(cmd.study), folder.given)
    runs = choose_runs(every, cmd.only)
    if not cmd.address:  # Nodes of a cluster may have files of their own.
        check_files(runs, every, folder)
    check_settings(cmd, study, runs)
    if cmd.dry_run:
        print_cost(cmd, study, runs, folder)
    if study.evaluate:  # It takes seconds to import what evaluates.
        check_evaluations(study, runs)
    if cmd.dry_run:
        if not cmd.address:
            with use_this_machine(0) as workers:
                _make_jobs(cmd, study, runs, folder, workers)
        return
    with folder.hold():
        settings = {c.plan.name: c.plan.settings_in(folder.given) for c in runs}
        folder.write_settings(settings)
        todo = [c for c in runs if not folder.is_done(c.plan.name, _ask(c, study))]
        progress = GridProgress(len(runs), len(runs) - len(todo))
        stopped_by = None
        if todo:
            stopped_by = _execute(cmd, study, todo, folder, progress)
        collected = folder.collect({c.plan.name: _ask(c, study) for c in every})
    with printing_may_fail():
        for name, reason in progress.failed.items():
            say(f"failed: {name}: {reason} (log: {folder.log(name)})")
        done = f"{progress.done} of {progress.total} runs done"
        say(f"{done}; {collected} in {folder.records}")
        if progress.done + len(progress.failed) < progress.total:
            print("Stopped. The same command goes on from there.")
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
    if cmd.bring_back and not cmd.address:
        raise InputError("--bring-back is for the nodes of an --address")
    if not cmd.address and cmd.cpus > count_cores():
        raise InputError(f"--cpus is {cmd.cpus}; this machine has {count_cores()}")


def _ask(checked: Checked, study: StudyFile) -> Asked:
    evaluate = [encode(plan) for plan in study.evaluate]
    key = {"budget": encode(checked.budget), "evaluate": evaluate}
    return Asked.of(checked.plan.settings, key)


# Work.


def _execute(
    cmd: GridCmd,
    study: StudyFile,
    todo: Sequence[Checked],
    folder: GridFolder,
    progress: GridProgress,
) -> int | None:
    """Run what is left to do; return the signal that stopped it, if one did."""
    by_name = {checked.plan.name: checked for checked in todo}
    screen = GridScreen(folder, progress)
    progress.left_steps = sum(checked.budget.steps for checked in todo)
    with (
        _connect(cmd, len(todo)) as workers,
        graceful_stop("stopping: runs end after their iteration") as stop,
        screen,
    ):
        jobs = _make_jobs(cmd, study, todo, folder, workers)
        for told in execute(
            workers,
            jobs,
            retries=cmd.retries,
            num_phases=folder.num_phases,
            files_of=lambda name: pack(folder.run(name), {}),
            is_stopped=stop.is_asked,
            is_given_up=progress.failed.__contains__,
        ):
            if told is None:
                screen.draw()
                continue
            try:
                words = _take_in(told, by_name[told.name], study, folder, progress)
            except (InputError, OSError) as error:  # The other runs go on.
                reason = str(error)
                if isinstance(error, OSError):  # A full disk, say.
                    why = error.strerror or error
                    reason = f"cannot keep its files in {folder.path}: {why}"
                progress.failed[told.name], words = reason, f"failed: {reason}"
            if words:
                screen.say(f"{told.name}: {words}")
    return stop.signal


def _connect(cmd: GridCmd, num_runs: int) -> AbstractContextManager[Workers]:
    """Return what connects to the workers: this machine's own, or a cluster's."""
    if not cmd.address:
        return use_this_machine(min(num_workers(cmd), num_runs))
    from horizon_rl.grid.cluster import join_cluster

    return join_cluster(cmd.address)


def _take_in(
    told: Told,
    checked: Checked,
    study: StudyFile,
    folder: GridFolder,
    progress: GridProgress,
) -> str:
    """Keep what became known of a run; return what to say of it."""
    name, ended = told.name, told.message
    if isinstance(ended, Started):
        progress.nodes[name] = ended.node
        progress.left_steps -= checked.budget.steps
        return f"under way on {ended.node}"
    if not isinstance(ended, Files):
        progress.nodes.pop(name, None)
    if name in progress.failed:
        return ""  # Some files did not arrive; without them, later ones are worthless.
    if isinstance(ended, Files):
        if ended.data:
            unpack(ended.data, folder.run(name))
        write_file(folder.log(name), ended.log)
        return ""
    if told.retried:
        progress.deaths += 1
        progress.left_steps += checked.budget.steps
        return f"{ended.reason}; it goes on from its last phase"
    if ended.standing == "failed":
        progress.failed[name] = ended.reason
        return f"failed: {ended.reason}"
    run = folder.read_run(name)
    if run and (ended.standing == "finished" or ended.evaluations):
        finished = is_finished(run, checked.budget)
        record = make_record(checked.plan, run, ended.evaluations, finished=finished)
        key = _ask(checked, study).key if finished else None
        folder.write_result(name, {"key": key, "record": record})
    progress.done += ended.standing == "finished"
    return ended.standing


def _make_jobs(
    cmd: GridCmd,
    study: StudyFile,
    todo: Sequence[Checked],
    folder: GridFolder,
    workers: Workers,
) -> Sequence[Job]:
    """Return the work on runs; refuse what could never be done."""
    deadline = time.time() + 60.0 * cmd.minutes if cmd.minutes else None
    has_gpus = workers.largest()[0] > 0.0
    jobs = [
        Job(
            name=(name := checked.plan.name),
            folder=str(folder.run(name)),
            log=str(folder.log(name)),
            config=to_toml({**checked.plan.settings_in(folder.given), "device": None}),
            groups=checked.groups,
            budget=checked.budget,
            device=checked.cmd.device,
            catalogue=str(own) if (own := checked.cmd.catalogue) else None,
            evaluate=study.evaluate,
            cwd=os.getcwd(),
            cpus=cmd.cpus,
            gpus=gpu_share(cmd, checked.cmd, has_gpus),
            deadline=deadline,
            away=cmd.bring_back,
        )
        for checked in todo
    ]
    check_resources(workers, jobs)
    return jobs
