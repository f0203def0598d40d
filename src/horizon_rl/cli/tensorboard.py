"""A run's figures for TensorBoard and, if asked for, Weights & Biases."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from horizon_rl.curriculum import Entry, Evidence, State
from horizon_rl.domains import Catalogue
from horizon_rl.support.errors import InputError
from horizon_rl.training.protocols import Iteration
from horizon_rl.training.run import Run

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

OUTCOME = {"commit": 1.0, "hold": 0.0, "rollback": -1.0}
MEASURED = (
    *("length", "tracking_error", "checkpoint_error", "checkpoint_return"),
    *("reference_error", "reference_return", "candidate_error", "candidate_return"),
    *("anchor_error", "anchor_return"),
)


@contextmanager
def open_writer(run: Run, wandb: bool) -> Iterator["SummaryWriter"]:
    """Open the run's TensorBoard file; with `wandb`, mirror it there.

    What earlier sittings wrote of a phase that runs again is not shown any more.
    """
    if wandb:
        try:
            import wandb as client  # pyright: ignore[reportMissingImports]
        except ModuleNotFoundError as error:
            raise InputError("--wandb needs wandb: pip install wandb") from error
        client.init(project="horizon-rl", name=run.path.name, sync_tensorboard=True)
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(run.path), purge_step=run.curriculum.state.env_steps + 1)
    try:
        yield writer
    finally:
        writer.close()


def write_iteration(writer: "SummaryWriter", iteration: Iteration) -> None:
    step = iteration.env_steps
    writer.add_scalar("train/reward", iteration.reward, step)
    if iteration.episode_length is not None and iteration.tracking_error is not None:
        writer.add_scalar("train/episode_length", iteration.episode_length, step)
        writer.add_scalar("train/tracking_error", iteration.tracking_error, step)
    writer.add_scalar("time/collect_s", iteration.collect_s, step)
    writer.add_scalar("time/learn_s", iteration.learn_s, step)
    for name, value in iteration.figures.items():
        writer.add_scalar(f"learn/{name}", value, step)


def write_phase(
    writer: "SummaryWriter", entry: Entry, state: State, catalogue: Catalogue
) -> None:
    """Write what a judged phase showed, and where it leaves the frontiers."""
    step, decision = state.env_steps, entry.decision
    for name, value in _gate_values(entry.evidence).items():
        writer.add_scalar(f"gate/{name}", value, step)
    writer.add_scalar("verdict/outcome", OUTCOME[decision.action], step)
    writer.add_scalar("verdict/score", decision.verdict.score, step)
    writer.add_text("verdict/reason", decision.reason, step)
    coverage = catalogue.coverage(state.mastered)
    for group, level in state.mastered.items():
        writer.add_scalar(f"mastered/{group}", level, step)
        writer.add_scalar(f"coverage/{group}", coverage[group], step)
    for group, level in entry.proposal.levels.items():
        writer.add_scalar(f"trained/{group}", level, step)
    writer.add_scalar("mastered/difficulty", state.difficulty, step)


def _gate_values(evidence: Evidence) -> dict[str, float]:
    values = {name: getattr(evidence, name) for name in MEASURED}
    return {name: value for name, value in values.items() if value is not None}
