"""Runs of a study as `horizon grid` sees them before they run: checked, and their cost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from horizon_rl.cli import train_flags
from horizon_rl.cli.common import read_catalogue
from horizon_rl.cli.grid_flags import GridCmd
from horizon_rl.cli.parse import parse, read_settings
from horizon_rl.cli.train_flags import TrainCmd
from horizon_rl.grid.cost import estimate_cost, measure_speed
from horizon_rl.grid.folder import GridFolder
from horizon_rl.grid.local import capacity, gpu_names
from horizon_rl.grid.study_file import PlannedRun, StudyFile, expand
from horizon_rl.runs.budget import Budget
from horizon_rl.show.numbers import show_count, show_duration
from horizon_rl.support.cores import count_cores
from horizon_rl.support.errors import InputError
from horizon_rl.training.config import widened_groups

OWN = ("run", "resume", "trust", "table", "wandb")
"""Flags of `horizon train` that a study cannot give: they are the grid's."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A run of the study whose settings have been read."""

    plan: PlannedRun
    cmd: TrainCmd
    groups: tuple[str, ...]

    @property
    def budget(self) -> Budget:
        return Budget(steps=self.cmd.cfg.steps, minutes=self.cmd.cfg.minutes)


def check_runs(study: StudyFile, source: str) -> tuple[Checked, ...]:
    """Expand a study, and read every run's settings as `horizon train` would."""

    @cache
    def group_names(catalogue: str | None) -> tuple[str, ...]:
        return read_catalogue(Path(catalogue) if catalogue else None).names

    read: dict[str, Checked] = {}
    found = []
    for plan in expand(study, group_names):
        # Seeds of a cell are read once: they differ in nothing else. Not as JSON: a
        # setting may be NaN or a date, until it is refused.
        key = repr({k: v for k, v in plan.settings.items() if k != "seed"})
        if key not in read:
            try:
                read[key] = _read(plan)
            except InputError as error:
                raise InputError(f"{source}: run {plan.name}: {error}") from error
        found.append(replace(read[key], plan=plan))
    return tuple(found)


def choose_runs(runs: Sequence[Checked], only: Sequence[str]) -> Sequence[Checked]:
    """Return the runs whose names fit a pattern; all of them without patterns."""
    if not only:
        return runs
    found = [c for c in runs if any(fnmatch(c.plan.name, pattern) for pattern in only)]
    if not found:
        raise InputError(f"no run of the study is called {' or '.join(only)}")
    return found


def _read(plan: PlannedRun) -> Checked:
    for key in OWN:
        if key in plan.settings:
            raise InputError(f"{key} is no setting of a run: a grid has its own")
    cmd = read_settings(train_flags, TrainCmd, plan.settings)
    catalogue = read_catalogue(cmd.catalogue)
    groups = widened_groups(cmd.cfg, catalogue)
    method = cmd.cfg.make_method(catalogue)  # It and `start` refuse what cannot start.
    if not cmd.cfg.teachers:  # They may be runs that are not there yet.
        method.start(groups)
    return Checked(plan=plan, cmd=cmd, groups=groups)


def check_evaluations(study: StudyFile, runs: Sequence[Checked]) -> None:
    """Refuse suites and columns that there are not before the long work begins."""
    from horizon_rl.cli import eval_flags
    from horizon_rl.cli.eval import check, load_suites

    plans = {
        (*plan.flags(checked.groups), *_catalogue_flag(checked))
        for checked in runs
        for plan in study.evaluate
    }
    for flags in plans:
        cmd = parse("eval", eval_flags, eval_flags.EvalCmd, ["run", *flags])
        check(cmd, load_suites(cmd))


def check_checkpoints(
    study: StudyFile, runs: Sequence[Checked], *, bring_back: bool
) -> None:
    """Refuse runs that delete checkpoints which somebody still needs."""
    needs = ["marks evaluate"] * any(plan.marks for plan in study.evaluate)
    needs += ["--bring-back may be copying"] * bring_back
    for checked in runs:
        if needs and checked.cmd.cfg.keep_checkpoints:
            raise InputError(
                f"run {checked.plan.name}: keep-checkpoints deletes checkpoints that "
                f"{needs[0]}: leave it out"
            )


def check_devices(cmd: GridCmd, runs: Sequence[Checked]) -> None:
    """Refuse devices that a grid cannot give to a run."""
    for checked in runs:
        device, problem = checked.cmd.device, ""
        if device.startswith("cuda:"):
            problem = "a grid chooses the GPU; take cuda"
        elif device == "cuda" and cmd.gpus == 0.0:
            problem = "it needs a share of a GPU, not --gpus 0"
        if problem:
            raise InputError(f"run {checked.plan.name}: device {device}: {problem}")


def _catalogue_flag(checked: Checked) -> tuple[str, ...]:
    catalogue = checked.cmd.catalogue
    return ("--catalogue", str(catalogue)) if catalogue else ()


def print_cost(
    cmd: GridCmd, study: StudyFile, runs: Sequence[Checked], folder: GridFolder
) -> None:
    speed, source = cmd.steps_per_s or study.steps_per_s, "given"
    if speed is None:
        begun = (folder.read_sound(checked.plan.name) for checked in runs)
        speed, source = measure_speed(filter(None, begun)), "measured"
    width = max(len(checked.plan.name) for checked in runs)
    lines = []
    for checked in runs:
        budget = checked.budget
        steps = (
            f"{budget.steps:,} env steps" if budget.steps else "no limit of env steps"
        )
        seconds = budget.left_s(0, 0.0, speed)
        hours = "" if seconds is None else f", {show_duration(seconds)}"
        lines.append(f"{checked.plan.name:{width}}  {steps}{hours}")
    cost = estimate_cost([checked.budget for checked in runs], speed)
    lines.append(f"{len(runs)} runs, {show_count(cost.env_steps)} env steps")
    if cost.unlimited:
        lines[-1] += f", and {cost.unlimited} run(s) without a limit"
    if cost.run_s is None:
        lines.append("hours: unknown; give --steps-per-s, or minutes to every run")
    else:
        line = f"{show_duration(cost.run_s)} of runs"
        if speed:
            line += f" at {speed:,.0f} steps/s a run ({source})"
        if most := _side_by_side(cmd, runs):
            least = max(cost.run_s / most, cost.longest_s)
            line += f"; {show_duration(least)} with {most} side by side"
        lines.append(line)
    print("\n".join(lines), flush=True)


def _side_by_side(cmd: GridCmd, runs: Sequence[Checked]) -> int:
    """Return how many runs this machine does at a time; 0 where it cannot."""
    if cmd.address:
        return 0
    gpus = len(gpu_names()) if any(c.cmd.device != "cpu" for c in runs) else 0
    share = max(gpu_share(cmd, checked.cmd, gpus > 0) for checked in runs)
    return min(len(runs), capacity(num_workers(cmd), gpus, share))


def num_workers(cmd: GridCmd) -> int:
    return cmd.workers or max(1, count_cores() // cmd.cpus)


def gpu_share(cmd: GridCmd, train: TrainCmd, has_gpus: bool) -> float:
    """Return how much of a GPU a run takes."""
    if train.device == "cpu":
        return 0.0
    if cmd.worlds_per_gpu:
        return min(1.0, train.cfg.num_envs / cmd.worlds_per_gpu)
    asks = train.device != "auto" or has_gpus
    return cmd.gpus if cmd.gpus is not None else float(asks)
