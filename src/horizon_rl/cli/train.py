"""`horizon train`: HORIZON and its controls, with a board, checkpoints and resume."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from signal import SIGTERM
from typing import TYPE_CHECKING

from rich.live import Live

from horizon_rl.cli.common import (
    Terminal,
    read_catalogue,
    refuse_changes,
    say,
    warn_of_unread,
)
from horizon_rl.cli.stopping import Terminated, graceful_stop
from horizon_rl.cli.train_flags import TrainCmd, named_run
from horizon_rl.curriculum.method import describe
from horizon_rl.runs.paths import checkpoint_folder, has_run, journal_of
from horizon_rl.runs.read import read_run
from horizon_rl.runs.results import write_results
from horizon_rl.runs.summarise import resume_command
from horizon_rl.show.actions import describe_phases, describe_undone
from horizon_rl.support.errors import InputError, NonFiniteError, RunError, needs_extra

with needs_extra("train"):
    from horizon_rl.cli.before_after import measure_before_after
    from horizon_rl.cli.tensorboard import (
        open_writer,
        write_film,
        write_iteration,
        write_phase,
    )
    from horizon_rl.show.scores import before_after_tables
    from horizon_rl.show.training_board import TrainingBoard, verdict_line
    from horizon_rl.support.ranks import Ranks, join
    from horizon_rl.training.context import read_context
    from horizon_rl.training.protocols import Iteration
    from horizon_rl.training.run import Run
    from horizon_rl.training.start import find_start, name_run

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

LOG_EVERY_S = 15.0
"""Seconds between two lines of progress where no terminal is redrawn."""


def run(cmd: TrainCmd) -> None:
    if cmd.film:
        from horizon_rl.cli.film_commits import check_films

        check_films()
    with join(cmd.device) as ranks:
        run = _resume(cmd, cmd.resume, ranks) if cmd.resume else _create(cmd, ranks)
        try:
            with graceful_stop(speaks=ranks.leads) as stop:
                if ranks.leads:
                    _train(run, cmd.wandb, cmd.film, stop.is_asked)
                else:
                    for _ in run.events():
                        pass  # The leader shows, and says when to stop.
        except NonFiniteError as error:
            last = run.checkpoint if ranks.leads else "with rank 0"
            raise RunError(f"{error}. Last good checkpoint: {last}") from error
        except OSError as error:
            raise RunError(
                f"{error}. The last commit is intact; go on with: {_go_on(run)}"
            ) from error
        finally:
            run.close()
    if ranks.leads:
        _report(run, cmd)
    if run.stopped and stop.signal == SIGTERM:
        raise Terminated


def _create(cmd: TrainCmd, ranks: Ranks) -> Run:
    if cmd.trust:
        raise InputError("--trust goes with --resume")
    cfg = cmd.cfg
    catalogue = ranks.once(lambda: read_catalogue(cmd.catalogue))
    init, name = find_start(cmd.init, cfg.learner)
    path = ranks.once(lambda: _new_folder(cmd.run) if cmd.run else name_run(cfg))
    run = Run.create(cfg, catalogue, path, cmd.device, ranks, init, name)
    if ranks.leads:
        warn_of_unread(cfg.method, run.curriculum.method, cfg)
    return run


def _new_folder(path: Path) -> Path:
    """Refuse a folder that holds a run, with the command that goes on with it."""
    if has_run(path):
        found = read_run(journal_of(path), evidence=False)
        resume = ""
        if found.kind == "training":
            more = " and a larger --steps" if found.summary.ended else ""
            command = resume_command(path, found.kind, found.summary.ranks)
            resume = f"go on with it by {command}{more}, or "
        raise InputError(f"{path} already holds a run: {resume}name another folder")
    return path


def _resume(cmd: TrainCmd, path: Path, ranks: Ranks) -> Run:
    """Go on with a run as it was started; only its budget may be another."""
    if cmd.run or cmd.init or cmd.catalogue:
        raise InputError(
            "--resume goes on with a run: leave out --run, --init and --catalogue"
        )
    given, path = cmd.cfg, ranks.once(lambda: named_run(path))
    recorded = ranks.once(lambda: read_context(path)).train
    refuse_changes(given, recorded, recorded, allowed=("steps", "minutes"))
    budget = {"steps": given.steps, "minutes": given.minutes}
    return Run.resume(path, **budget, device=cmd.device, ranks=ranks, trust=cmd.trust)


def _go_on(run: Run) -> str | None:
    return resume_command(run.path, "training", run.ranks.size)


def _train(run: Run, wandb: bool, films: bool, is_asked: Callable[[], bool]) -> None:
    """Train to the end of the budget or the user's patience, and show it."""
    console = Terminal(soft_wrap=True)
    say(f"Run: {run.path}")
    ranks = f", on each of {run.ranks.size} ranks" if run.ranks.size > 1 else ""
    console.print(f"Device: {run.worlds.env.device}{ranks}")
    groups = ", ".join(run.curriculum.state.mastered)
    stay = run.cfg.levels and f"at {run.cfg.levels}"
    trained = "; ".join(filter(None, (groups, stay)))
    console.print(f"Method: {run.cfg.method}, groups {trained}; {run.start}")
    if about := describe(run.curriculum.method):
        console.print(about)
    board = TrainingBoard(run)
    live = None
    if console.is_terminal:
        live = Live(board.draw(), console=Terminal(), auto_refresh=False)
    said = time.perf_counter()
    with open_writer(run, wandb) as writer, live or nullcontext():
        for event in run.events(is_asked):
            board.add(event)
            is_verdict = not isinstance(event, Iteration)
            if is_verdict:
                write_phase(writer, event, run.curriculum.state, run.catalogue)
                if films and event.decision.action == "commit":
                    _film(run, event.decision.phase, writer, wandb)
            else:
                write_iteration(writer, event)
            if live:
                live.update(board.draw(), refresh=True)
            elif is_verdict or time.perf_counter() - said > LOG_EVERY_S:
                line = verdict_line(event) if is_verdict else board.line()
                console.print(line)
                said = time.perf_counter()
    if not live:
        Terminal().print(board.draw())


def _film(run: Run, phase: int, writer: "SummaryWriter", wandb: bool) -> None:
    from horizon_rl.cli.film_commits import film_commit

    if path := film_commit(run, phase):
        write_film(writer, path, run.curriculum.state.env_steps, wandb)


def _report(run: Run, cmd: TrainCmd) -> None:
    """Compare the policy with the one the run started from, and say where it lies."""
    if run.stopped:
        phase = run.curriculum.state.phase
        say(f"Stopped. Phase {phase} was not judged and will run again.")
        say(f"Go on with: {_go_on(run)}")
        return
    console = Terminal(soft_wrap=True)
    console.print(f"Finished: {run.ended}.")
    entries = run.curriculum.entries
    total = run.curriculum.state.env_steps
    console.print(
        f"{describe_phases(entries)}; {total / 1e6:.2f} M env steps, "
        f"{describe_undone(entries)}; {run.trained_s / 60.0:.1f} min."
    )
    if cmd.table and checkpoint_folder(run.path).is_dir():
        found = measure_before_after(run, cmd.table, cmd.device)
        write_results(run.path, found)
        Terminal().print_tables(before_after_tables(found), markdown=False)
    elif cmd.table:
        console.print(
            "No table of success before and after: the checkpoint that the run started "
            "from is gone."
        )
    say(f"Run: {run.path}")
    say(f"Checkpoint: {run.checkpoint}")
