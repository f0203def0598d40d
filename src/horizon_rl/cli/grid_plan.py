"""Runs of a study as `horizon grid` sees them before they run: checked, and their cost."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from horizon_rl import robots
from horizon_rl.cli import train_flags
from horizon_rl.cli.common import read_catalogue
from horizon_rl.cli.grid_flags import GridCmd
from horizon_rl.cli.parse import parse, read_settings
from horizon_rl.cli.train_flags import TrainCmd
from horizon_rl.grid.folder import GridFolder
from horizon_rl.grid.job import is_finished
from horizon_rl.grid.local import capacity, gpu_names
from horizon_rl.grid.marks import REACHED
from horizon_rl.grid.study_file import PlannedRun, StudyFile, expand
from horizon_rl.learning import LearnerCfg
from horizon_rl.policies.shipped import find_checkpoint
from horizon_rl.robots.bodies import check_robot, is_mjcf
from horizon_rl.runs.budget import Budget
from horizon_rl.runs.paths import has_run
from horizon_rl.runs.read import RunFiles
from horizon_rl.show.numbers import show_count, show_duration
from horizon_rl.support.cores import count_cores
from horizon_rl.support.errors import InputError, blame
from horizon_rl.training.config import widened_groups
from horizon_rl.training.start import find_start

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


def check_runs(study: StudyFile, source: str, grid: Path) -> tuple[Checked, ...]:
    """Expand a study, and read every run's settings as `horizon train` would."""

    @cache
    def group_names(catalogue: str | None) -> tuple[str, ...]:
        return read_catalogue(Path(catalogue) if catalogue else None).names

    read: dict[str, Checked] = {}
    found: dict[tuple, Checked] = {}
    for plan in expand(study, group_names):
        # Seeds of a cell are read once: they differ in nothing else. Not as JSON: a
        # setting may be NaN or a date, until it is refused.
        key = repr({k: v for k, v in plan.settings.items() if k != "seed"})
        if key not in read:
            with blame(f"{source}: run {plan.name}"):
                read[key] = _read(plan, grid)
        checked = replace(read[key], plan=plan)
        run = plan.method, plan.setting, plan.seed, frozenset(checked.groups)
        if same := found.get(run):
            raise InputError(
                f"{source}: run {plan.name} widens the same groups as {same.plan.name}, "
                "and is the same run: list them once"
            )
        found[run] = checked
    return tuple(found.values())


def choose_runs(runs: Sequence[Checked], only: Sequence[str]) -> Sequence[Checked]:
    """Return the runs whose names fit a pattern; all of them without patterns."""
    if not only:
        return runs
    found = [c for c in runs if any(fnmatch(c.plan.name, pattern) for pattern in only)]
    if not found:
        raise InputError(f"no run of the study is called {' or '.join(only)}")
    return found


def _read(plan: PlannedRun, grid: Path) -> Checked:
    for key in OWN:
        if key in plan.settings:
            raise InputError(f"{key} is no setting of a run: a grid has its own")
    cmd = read_settings(train_flags, TrainCmd, plan.settings_in(grid))
    catalogue = read_catalogue(cmd.catalogue)
    groups = widened_groups(cmd.cfg, catalogue)
    method = cmd.cfg.make_method(catalogue)  # It and `start` refuse what cannot start.
    if not cmd.cfg.teachers:  # They may be runs that are not there yet.
        method.start(groups)
    check_robot(cmd.cfg.robot)
    return Checked(plan=plan, cmd=cmd, groups=groups)


def check_files(
    runs: Sequence[Checked], every: Sequence[Checked], folder: GridFolder
) -> None:
    """Refuse bodies, starts and teachers that are not there, nor made by other runs."""
    made = {folder.run(checked.plan.name) for checked in every}

    @cache  # Whole journals are read for it.
    def check(find: Callable[..., Any], policy: str, *args: LearnerCfg) -> None:
        path = Path(policy).absolute()
        if made.isdisjoint((path, *path.parents)):
            find(policy, *args)

    for checked in runs:
        name, init, cfg = checked.plan.name, checked.cmd.init, checked.cmd.cfg
        with blame(f"run {name}"):
            run = folder.read_sound(name) if is_mjcf(cfg.robot) else None
            if is_mjcf(cfg.robot) and not is_finished(run, checked.budget):
                robots.load_robot(cfg.robot)
            if has_run(folder.run(name)):
                continue  # It goes on without its start.
            if init:
                check(find_start, init, cfg.learner)
            for text in cfg.teachers:
                from horizon_rl.policies.teachers import split_teacher  # Takes seconds.

                check(find_checkpoint, split_teacher(text)[0])


def check_evaluations(study: StudyFile, runs: Sequence[Checked]) -> None:
    """Refuse suites and columns that there are not before the long work begins."""
    from horizon_rl.cli import eval_flags
    from horizon_rl.cli.eval import check, load_suites

    plans = {
        (*plan.flags(checked.groups), *["--catalogue", str(own)] * bool(own))
        for checked in runs
        for own in [checked.cmd.catalogue]
        for plan in study.evaluate
    }
    for flags in plans:
        cmd = parse("eval", eval_flags, eval_flags.EvalCmd, ["run", *flags])
        check(cmd, load_suites(cmd))


def check_settings(cmd: GridCmd, study: StudyFile, runs: Sequence[Checked]) -> None:
    """Refuse settings that a grid cannot work with, or that leave nothing to evaluate."""
    needs = ["marks evaluate"] * any(plan.marks for plan in study.evaluate)
    needs += ["--bring-back may be copying"] * cmd.bring_back
    # An evaluation without marks is at the end.
    marks = [mark for plan in study.evaluate for mark in plan.marks or (0.0,)]
    for checked in runs:
        plan, cfg, device = checked.plan, checked.cmd.cfg, checked.cmd.device
        # A phase that was begun is finished, and probed.
        phase = cfg.iterations * cfg.steps_per_iteration
        reach = cfg.steps + phase + cfg.num_probed * cfg.task.max_steps
        problem = ""
        if needs and cfg.keep_checkpoints:
            problem = (
                f"keep-checkpoints deletes checkpoints that {needs[0]}: leave it out"
            )
        elif cfg.steps and reach < REACHED * min(marks, default=0.0):
            listed = ", ".join(f"{mark:,.0f}" for mark in marks)
            problem = f"its {cfg.steps:,} env steps end before any mark ({listed})"
        elif cmd.bring_back and plan.settings_in(Path()) != plan.settings:
            problem = "{grid}: with --bring-back, nodes do not have that folder"
        elif device.startswith("cuda:"):
            problem = f"device {device}: a grid chooses the GPU; take cuda"
        elif device == "cuda" and cmd.gpus == 0.0:
            problem = "device cuda: it needs a share of a GPU, not --gpus 0"
        if problem:
            raise InputError(f"run {plan.name}: {problem}")


def print_cost(
    cmd: GridCmd, study: StudyFile, runs: Sequence[Checked], folder: GridFolder
) -> None:
    """Say what runs may spend at most, but for the end of a phase that was begun."""
    speed, source = cmd.steps_per_s or study.steps_per_s, "given"
    if speed is None:
        begun = (folder.read_sound(checked.plan.name) for checked in runs)
        speed, source = _measure_speed(filter(None, begun)), "measured"
    width = max(len(checked.plan.name) for checked in runs)
    budgets, lines, known = [checked.budget for checked in runs], [], []
    for checked, budget in zip(runs, budgets, strict=True):
        steps = f"{budget.steps:,}" if budget.steps else "no limit of"
        lines.append(f"{checked.plan.name:{width}}  {steps} env steps")
        if (seconds := budget.left_s(0, 0.0, speed)) is not None:
            known.append(seconds)
            lines[-1] += f", {show_duration(seconds)}"
    env_steps = sum(budget.steps for budget in budgets)
    lines.append(f"{len(runs)} runs, {show_count(env_steps)} env steps")
    if unlimited := sum(not (b.steps or b.minutes) for b in budgets):
        lines[-1] += f", and {unlimited} run(s) without a limit"
    if len(known) < len(runs):
        lines.append("hours: unknown; give --steps-per-s, or minutes to every run")
    else:
        line = f"{show_duration(sum(known))} of runs"
        if speed:
            line += f" at {speed:,.0f} steps/s a run ({source})"
        if most := _side_by_side(cmd, runs):
            least = max(sum(known) / most, *known)
            line += f"; {show_duration(least)} with {most} side by side"
        lines.append(line)
    print("\n".join(lines), flush=True)


def _measure_speed(runs: Iterable[RunFiles]) -> float | None:
    """Return the env steps a second that runs have had, probes and all; None: none has."""
    steps = seconds = 0.0
    for run in runs:
        timed = run.phase_times()
        steps += sum(e.evidence.env_steps for e in run.entries[: len(timed)])
        seconds += float(timed.sum())
    return steps / seconds if seconds else None


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
