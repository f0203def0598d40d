"""A run's figures for TensorBoard and, if asked for, Weights & Biases."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from horizon_rl.curriculum import Entry, Evidence, State
from horizon_rl.domains import Catalogue
from horizon_rl.support.errors import InputError
from horizon_rl.training.protocols import Iteration
from horizon_rl.training.run import Run

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

OUTCOME = {"commit": 1.0, "hold": 0.0}
"""Of the other actions it is -1."""


@contextmanager
def open_writer(run: Run, wandb: bool) -> Iterator["SummaryWriter"]:
    """Open the run's TensorBoard file; with `wandb`, mirror it there.

    What was written before of a phase that runs again is not shown any more.
    """
    client: Any = None
    if wandb:
        try:
            import wandb as client  # pyright: ignore[reportMissingImports]
        except ModuleNotFoundError as error:
            raise InputError("--wandb needs wandb: pip install wandb") from error
        try:
            client.init(project="horizon-rl", name=run.path.name, sync_tensorboard=True)
        except client.Error as error:
            raise InputError(
                f"--wandb: {error} WANDB_MODE=offline keeps all on this machine."
            ) from error
    from torch.utils.tensorboard import SummaryWriter

    failed = True
    try:
        steps = run.curriculum.state.env_steps
        with SummaryWriter(str(run.path), purge_step=steps + 1) as writer:
            yield writer
        failed = False
    finally:
        if client:
            client.finish(exit_code=int(failed))


def write_iteration(writer: "SummaryWriter", iteration: Iteration) -> None:
    values = {
        f"{'time' if name.endswith('_s') else 'train'}/{name}": value
        for name, value in _numbers(iteration).items()
    }
    values |= {f"learn/{name}": value for name, value in iteration.figures.items()}
    _write(writer, values, iteration.env_steps)


def write_phase(
    writer: "SummaryWriter", entry: Entry, state: State, catalogue: Catalogue
) -> None:
    """Write what a judged phase showed, and where it leaves the frontiers."""
    decision, coverage = entry.decision, catalogue.coverage(state.mastered)
    values = {
        **{f"gate/{name}": value for name, value in _numbers(entry.evidence).items()},
        **{f"probe/{name}": value for name, value in entry.evidence.probed.items()},
        "verdict/outcome": OUTCOME.get(decision.action, -1.0),
        "verdict/score": decision.verdict.score,
        **{f"mastered/{group}": level for group, level in state.mastered.items()},
        **{f"coverage/{group}": coverage[group] for group in state.mastered},
        **{f"trained/{group}": level for group, level in entry.proposal.levels.items()},
        "mastered/difficulty": state.difficulty,
    }
    _write(writer, values, state.env_steps)
    writer.add_text("verdict/reason", decision.reason, state.env_steps)


def write_film(
    writer: "SummaryWriter", film: Path, env_steps: int, wandb: bool
) -> None:
    """Add a film of a commit: TensorBoard plays a GIF among its images."""
    # Any: neither has stubs for it.
    from tensorboard.compat.proto import summary_pb2

    kinds: Any = summary_pb2
    image = kinds.Summary.Image(encoded_image_string=film.read_bytes())
    value = kinds.Summary.Value(tag="film/commit", image=image)
    events: Any = writer.file_writer
    events.add_summary(kinds.Summary(value=[value]), env_steps)
    if wandb:
        # Its mirror of TensorBoard leaves such images out.
        import wandb as client  # pyright: ignore[reportMissingImports]

        film_commit = client.Video(str(film), format="gif")
        client.log({"film/commit": film_commit, "global_step": env_steps})


def _numbers(record: Iteration | Evidence) -> dict[str, float]:
    """Return what was measured, and no counts."""
    return {k: value for k, value in vars(record).items() if isinstance(value, float)}


def _write(writer: "SummaryWriter", values: Mapping[str, float], step: int) -> None:
    for name, value in values.items():
        writer.add_scalar(name, value, step)
