"""`horizon train`: PPO at fixed ranges, with progress, checkpoints and resume."""

import signal
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import tyro
from rich.live import Live
from rich.table import Table

from horizon_rl.cli.common import (
    Terminal,
    new_run_path,
    read_catalogue,
    refuse_changes,
)
from horizon_rl.errors import InputError, RunError, needs_extra, unknown
from horizon_rl.models import find_checkpoint

with needs_extra("train"):
    from horizon_rl.learning import NonFiniteError
    from horizon_rl.ranks import Ranks, join
    from horizon_rl.training import (
        Iteration,
        PolicyKind,
        Preset,
        Run,
        TrainCfg,
        newest_checkpoint,
        preset_cfg,
        success_rate,
    )
    from horizon_rl.training.run import read_settings, start_command

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


@dataclass(frozen=True, kw_only=True)
class TrainCmd:
    """Train a policy by PPO at fixed ranges: the `base` method.

    On several GPUs: torchrun --nproc-per-node 4 -m horizon_rl train ...
    """

    method: Literal["base"] = "base"
    """base: fixed ranges throughout."""
    preset: Preset = "laptop"
    """smoke: seconds; laptop: two cores; paper: the paper's tables."""
    policy: PolicyKind = "mlp"
    """The actor: transformer or mlp."""
    run: Path | None = None
    """Directory of the run; without it, logs/train/<date and time>."""
    resume: Path | None = None
    """Go on with the run in this directory, with the settings it was started with;
    --steps and --minutes may set a new budget."""
    init: str | None = None
    """Checkpoint, run or shipped model (`horizon models`) to start from: its weights,
    not its counters."""
    catalogue: Path | None = None
    """Catalogue to read, a TOML file; without it, the paper's seven groups."""
    device: str = "auto"
    """Where to simulate and learn: auto is the GPU where there is one, else the CPU;
    cpu, cuda, cuda:1, ... A resumed run may take another. Of several ranks (torchrun),
    each takes the GPU of its own number."""
    wandb: bool = False
    """Send metrics to Weights & Biases too (needs `pip install wandb`)."""
    cfg: Annotated[TrainCfg, tyro.conf.arg(name="")] = field(default_factory=TrainCfg)


def default(args: Sequence[str]) -> TrainCmd:
    """Return the defaults that --preset and --policy in `args` ask for."""
    flags = ArgumentParser(add_help=False, allow_abbrev=False)
    flags.add_argument("--preset", default="laptop")
    flags.add_argument("--policy", default="mlp")
    chosen, _ = flags.parse_known_args(args)
    if chosen.policy not in get_args(PolicyKind):
        raise InputError(unknown("policy", chosen.policy, get_args(PolicyKind)))
    return TrainCmd(cfg=preset_cfg(chosen.preset, chosen.policy))


def run(cmd: TrainCmd) -> None:
    with join(cmd.device) as ranks:
        run = _open(cmd, ranks)
        try:
            _train(run, cmd.wandb) if ranks.leads else _follow(run)
        except NonFiniteError as error:
            last = newest_checkpoint(run.path)
            raise RunError(
                f"{error}. Last good checkpoint: {last or 'none yet'}"
            ) from error
    if ranks.leads:
        _report(run)


def _open(cmd: TrainCmd, ranks: Ranks) -> Run:
    if cmd.resume:
        return _resume(cmd, cmd.resume, ranks)
    cfg = cmd.cfg
    if not (cfg.steps or cfg.minutes):
        raise InputError("no budget: give --steps or --minutes")
    label = f"{cmd.policy}-{cfg.robot}"
    path = ranks.once(lambda: cmd.run or new_run_path(Path("logs/train"), label))
    catalogue = ranks.once(lambda: read_catalogue(cmd.catalogue))
    init = find_checkpoint(cmd.init) if cmd.init else None
    return Run.create(cfg, catalogue, path, cmd.device, ranks, init)


def _resume(cmd: TrainCmd, path: Path, ranks: Ranks) -> Run:
    """Go on with a run as it was started; only its budget may be another."""
    if cmd.run or cmd.init or cmd.catalogue:
        raise InputError(
            "--resume goes on with a run: leave out --run, --init and --catalogue"
        )
    given, usual = cmd.cfg, preset_cfg(cmd.preset, cmd.policy)
    recorded = ranks.once(lambda: read_settings(path)).cfg
    budget = ("steps", "minutes")
    refuse_changes(given, usual, recorded, allowed=budget)
    new = {
        k: getattr(given, k) for k in budget if getattr(given, k) != getattr(usual, k)
    }
    return Run.resume(path, **new, device=cmd.device, ranks=ranks)


def _follow(run: Run) -> None:
    """Train as another rank says, and leave it to show and to stop."""
    for _ in run.iterations():
        pass


def _train(run: Run, wandb: bool) -> None:
    """Train to the end of the budget or the user's patience, and show it."""
    console = Terminal()
    print(f"Run: {run.path}")
    ranks = f", on each of {run.ranks.size} ranks" if run.ranks.size > 1 else ""
    console.print(f"Device: {run.trainer.env.device}{ranks}")
    board = _Board(run)
    live = (
        Live(board.table(), console=console, auto_refresh=False)
        if console.is_terminal
        else nullcontext()
    )
    with _graceful_stop() as stop, _writer(run.path, wandb) as writer, live:
        for iteration in run.iterations(lambda: stop.asked):
            board.add(iteration)
            _write(writer, iteration)
            if isinstance(live, Live):
                live.update(board.table(), refresh=True)
            elif iteration.number % 10 == 1:
                console.print(board.line(), soft_wrap=True)


def _report(run: Run) -> None:
    """Measure the trained policy on fresh episodes, and say where it lies."""
    if run.stopped:
        start = start_command(run.ranks.size)
        print(f"Stopped and saved. Go on with: {start} train --resume {run.path}")
        return
    console, cfg = Terminal(), run.trainer.cfg
    console.print(f"Finished: {run.budget_spent}.")
    if cfg.probe_episodes:
        episodes = run.trainer.probe(cfg.probe_episodes, cfg.seed)
        share = success_rate(episodes, cfg.task.max_steps)
        console.print(
            f"Success on {len(episodes)} fresh episodes, mean actions: {share:.1%} "
            f"(tracking error {episodes.tracking_error.mean():.3f} m/s)"
        )
    print(f"Checkpoint: {newest_checkpoint(run.path)}")


class _Board:
    """Progress: the last iteration's figures, speeds and the time left."""

    def __init__(self, run: Run):
        self.run = run
        self.began = time.perf_counter()
        self.first_steps = run.trainer.env_steps
        self.last: Iteration | None = None

    def add(self, iteration: Iteration) -> None:
        self.last = iteration

    def figures(self) -> dict[str, str]:
        last = self.last
        if last is None:
            return {"iteration": "0", "": "compiling and filling buffers"}
        steps = self.run.trainer.steps_per_iteration
        return {
            "iteration": f"{last.number}",
            "env steps": f"{last.env_steps / 1e6:.2f} M",
            "steps/s": f"{steps / (last.collect_s + last.learn_s):,.0f}",
            "collecting": f"{steps / last.collect_s:,.0f}/s",
            "learning": f"{steps / last.learn_s:,.0f}/s",
            "reward": f"{last.reward:.4f}",
            "episode length": _share(last.episode_length),
            "tracking error": _number(last.tracking_error),
            "time left": self._time_left(),
        }

    def table(self) -> Table:
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for name, value in self.figures().items():
            table.add_row(f"[bold]{name}[/]", value)
        return table

    def line(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.figures().items())

    def _time_left(self) -> str:
        cfg, trainer = self.run.trainer.cfg, self.run.trainer
        elapsed = time.perf_counter() - self.began
        estimates = []
        if cfg.steps:
            speed = (trainer.env_steps - self.first_steps) / elapsed
            estimates.append((cfg.steps - trainer.env_steps) / speed)
        if cfg.minutes:
            estimates.append(60.0 * cfg.minutes - self.run.trained_s - elapsed)
        left = max(0.0, min(estimates, default=0.0))
        return f"{left / 60.0:.1f} min"


def _share(value: float | None) -> str:
    return "none ended yet" if value is None else f"{value:.0%} of the longest"


def _number(value: float | None) -> str:
    return "none ended yet" if value is None else f"{value:.3f} m/s"


def _write(writer: "SummaryWriter", iteration: Iteration) -> None:
    step = iteration.env_steps
    writer.add_scalar("train/reward", iteration.reward, step)
    if iteration.episode_length is not None and iteration.tracking_error is not None:
        writer.add_scalar("train/episode_length", iteration.episode_length, step)
        writer.add_scalar("train/tracking_error", iteration.tracking_error, step)
    writer.add_scalar("time/collect_s", iteration.collect_s, step)
    writer.add_scalar("time/learn_s", iteration.learn_s, step)
    for name, value in iteration.figures.items():
        writer.add_scalar(f"learn/{name}", value, step)


@contextmanager
def _writer(path: Path, wandb: bool) -> Iterator["SummaryWriter"]:
    """Open the run's TensorBoard file; with `wandb`, mirror it there."""
    if wandb:
        try:
            import wandb as client  # pyright: ignore[reportMissingImports]
        except ModuleNotFoundError as error:
            raise InputError("--wandb needs wandb: pip install wandb") from error
        client.init(project="horizon-rl", name=path.name, sync_tensorboard=True)
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(path))
    try:
        yield writer
    finally:
        writer.close()


class _Stop:
    """Whether the user has asked to stop."""

    asked = False


@contextmanager
def _graceful_stop() -> Iterator[_Stop]:
    """Turn the first Ctrl-C into a request; the second stops at once."""
    stop = _Stop()
    before = signal.getsignal(signal.SIGINT)

    def ask(number, frame):
        stop.asked = True
        signal.signal(signal.SIGINT, before)
        print(
            "\nstopping after this iteration; Ctrl-C again stops at once",
            file=sys.stderr,
        )

    signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
