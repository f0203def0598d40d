"""One run as a worker does it: `horizon train` or `--resume`, then `horizon eval`.

Each is a process of its own, the same that a user would start by hand. This file needs
no Ray: a job is a generator that tells what it does.
"""

import json
import re
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from horizon_rl.grid.marks import CheckpointAt, evaluated_at
from horizon_rl.grid.process import POLL_S, Stopped, start, watch
from horizon_rl.grid.study_file import EvaluationPlan
from horizon_rl.grid.transport import pack, unpack
from horizon_rl.runs.budget import Budget
from horizon_rl.runs.lock import is_locked
from horizon_rl.runs.paths import checkpoint_folder, has_run, journal_of
from horizon_rl.runs.read import RunFiles, read_run
from horizon_rl.support.errors import InputError

PATIENCE_S = 30.0
"""How long to wait for the process of a worker that died to let go of its run."""
INTERRUPTED = (130, 75, -signal.SIGINT, -signal.SIGTERM)
"""Exit codes of a command that was asked to end: `horizon`'s own after Ctrl-C and
SIGTERM, and Python's before `horizon` has begun."""
BAD_INPUT = 2
"""Exit code of a command that would fail again."""

Standing = Literal["finished", "stopped", "failed"]


@dataclass(frozen=True, kw_only=True)
class Job:
    """All that a worker must know to start a run, or to go on with it."""

    name: str
    folder: str
    """Directory of the run; on a node that does not share it, only its name counts."""
    log: str
    config: str
    """Its settings as TOML."""
    groups: tuple[str, ...]
    """What it widens."""
    budget: Budget
    device: str
    catalogue: str | None
    evaluate: tuple[EvaluationPlan, ...]
    cwd: str
    cpus: int = 1
    gpus: float = 0.0
    visible_gpu: str | None = None
    """The only GPU that it is to see, as CUDA names it; None: as its worker does."""
    deadline: float | None = None
    """When to stop training, seconds since the epoch."""
    away: bool = False
    """Train in a folder of the node's own, and send back what is written."""


@dataclass(frozen=True)
class Started:
    """A worker has taken the run up."""

    node: str


@dataclass(frozen=True)
class Files:
    """What a run has written since the last time, as `unpack` takes it."""

    data: bytes | None = field(repr=False)
    """None where only the log is new."""
    log: bytes = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How the work on a run ended this time."""

    standing: Standing
    code: int = 0
    reason: str = ""
    evaluations: tuple[dict[str, Any], ...] = ()


Message = Started | Files | Ended


def is_finished(run: RunFiles | None, budget: Budget) -> bool:
    """Tell whether a run is at its end, by itself or by the study's budget."""
    if run is None:
        return False
    state, seconds = run.journal.state, float(run.phase_times().sum())
    return bool(state.ended or budget.spent(state.env_steps, seconds))


def run_job(
    job: Job, files: bytes | None = None, is_stopped: Callable[[], bool] = lambda: False
) -> Iterator[Message]:
    """Train or resume, then evaluate; one that is stopped ends after its iteration.

    `files` are the run's so far, where the job is `away`.
    """
    yield Started(socket.gethostname())
    with tempfile.TemporaryDirectory(
        prefix="horizon-grid-", ignore_cleanup_errors=True
    ) as scratch:
        place, log = Path(job.folder), Path(job.log)
        if job.away:
            place, log = Path(scratch) / "runs" / job.name, Path(scratch) / "log"
        try:
            if files:
                unpack(files, place)
            if not log.parent.is_dir():
                raise InputError(
                    f"{socket.gethostname()} has no folder {log.parent}: share it with "
                    "all nodes, or give --bring-back"
                )
            for message in _work(job, place, log, Path(scratch), is_stopped):
                if job.away and isinstance(message, Ended) and log.exists():
                    yield Files(None, log.read_bytes())
                yield message
        except InputError as error:  # Damaged files, say, which stay damaged.
            code = 1 if isinstance(error.__cause__, OSError) else BAD_INPUT
            yield Ended(standing="failed", code=code, reason=str(error))


def _work(
    job: Job, place: Path, log: Path, scratch: Path, is_stopped: Callable[[], bool]
) -> Iterator[Message]:
    code = said = 0
    if not is_finished(_read(place), job.budget) and not _is_late(job):
        _wait_for_owner(place)
        if is_stopped():
            yield Ended(standing="stopped")
            return

        def should_stop() -> bool:
            return is_stopped() or _is_late(job)

        def bring_back(*, final: bool) -> Iterator[Files]:
            """Tell of new phases, where nobody else sees them."""
            if job.away and (data := pack(place, sent, final=final)):
                yield Files(data, log.read_bytes())

        sent: dict[str, tuple[int, int]] = {}
        said = _size(log)
        train = _train_command(job, place, scratch)
        # One that is late at its turn is evaluated like all others that are late.
        with suppress(Stopped), start(job, train, log, scratch, should_stop) as child:
            for _ in watch(child, should_stop):
                yield from bring_back(final=False)
            yield from bring_back(final=True)
            code = child.returncode
    if _is_late(job) and code in INTERRUPTED:
        code = 0  # We have asked it to end.
    run = _read(place)
    if is_stopped() or (_is_late(job) and run is None and not code):
        yield Ended(standing="stopped")
        return
    if code or run is None:
        yield Ended(standing="failed", code=code or 1, reason=_reason(code, log, said))
        return
    found: list[dict[str, Any]] = []
    for plan in job.evaluate:
        points = evaluated_at(run.journal, plan.marks)
        if is_stopped() or not points:
            continue
        command = _eval_command(job, plan, place, points, scratch)
        said = _size(log)
        with start(job, command, log, scratch) as child:
            for _ in watch(child, is_stopped):
                pass
        if child.returncode and not is_stopped():
            reason = _reason(child.returncode, log, said)
            yield Ended(standing="failed", code=child.returncode, reason=reason)
            return
        if not child.returncode:
            found += _read_results(scratch / "evaluations.json", points)
    if is_stopped():
        yield Ended(standing="stopped")
        return
    standing = "finished" if is_finished(run, job.budget) else "stopped"
    yield Ended(standing=standing, evaluations=tuple(found))


def _read(place: Path) -> RunFiles | None:
    return read_run(journal_of(place), evidence=False) if has_run(place) else None


def _is_late(job: Job) -> bool:
    return job.deadline is not None and time.time() > job.deadline


def _wait_for_owner(place: Path) -> None:
    """Give the process of a worker that was killed the time to notice."""
    began = time.monotonic()
    while has_run(place) and is_locked(journal_of(place)):
        if time.monotonic() - began > PATIENCE_S:
            return  # Somebody else trains it: `horizon train` will say so.
        time.sleep(POLL_S)


# Commands.


def _train_command(job: Job, place: Path, scratch: Path) -> list[str]:
    command = ["train", "--table", "0", "--device", job.device]
    if has_run(place):
        budget = job.budget
        steps, minutes = str(budget.steps), str(budget.minutes)
        return [
            *(*command, "--resume", str(place)),
            *("--steps", steps, "--minutes", minutes),
        ]
    config = scratch / "settings.toml"
    config.write_text(job.config, "utf-8")
    return [*command, "--config", str(config), "--run", str(place)]


def _eval_command(
    job: Job,
    plan: EvaluationPlan,
    place: Path,
    points: Sequence[CheckpointAt],
    scratch: Path,
) -> list[str]:
    names = dict.fromkeys(point.checkpoint for point in points)
    policies = [f"{name}={checkpoint_folder(place, name)}" for name in names]
    catalogue = ["--catalogue", job.catalogue] if job.catalogue else []
    where = ["--device", job.device, "--threads", str(job.cpus)]
    json_file = ["--json", str(scratch / "evaluations.json")]
    return ["eval", *policies, *plan.flags(job.groups), *where, *catalogue, *json_file]


def _read_results(
    file: Path, points: Sequence[CheckpointAt]
) -> Iterator[dict[str, Any]]:
    """Read evaluations, those of a checkpoint once for every mark that it stands for."""
    found = json.loads(file.read_bytes())
    found = found if isinstance(found, list) else [found]
    for point in points:
        for record in found:
            if record["policy"] == point.checkpoint:
                yield {"mark": point.mark, "env_steps": point.env_steps, **record}


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def _reason(code: int, log: Path, begin: int) -> str:
    """Say why a command failed: what killed it, or its complaint, else its last words.

    Before `begin`, the log has the words of others.
    """
    if code < 0:
        hint = ", perhaps for lack of memory" * (code == -9)
        return f"its process was killed (signal {-code}{hint})"
    words = log.read_bytes()[begin:].decode("utf-8", "replace") if log.exists() else ""
    said = [line.strip() for line in words.splitlines() if line.strip()]
    own = [line for line in said[-20:] if re.match("horizon: (?!warning: )", line)]
    return (own or said or ["no output"])[-1].removeprefix("horizon: ")
