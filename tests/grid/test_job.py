"""How the work on a run ends, by the exit code of its command."""

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from horizon_rl.grid import job as jobs
from horizon_rl.grid.job import Ended, Files, Job, run_job
from horizon_rl.runs.budget import Budget


@pytest.fixture
def exits_with(monkeypatch):
    """Put a command that says a word and exits in the place of `horizon train`."""

    def replace(code: int, begun: Callable[[], object] = lambda: None) -> None:
        @contextmanager
        def start(job: Job, command: list[str], log: Path, scratch: Path):
            log.write_text("horizon: alas\n")
            begun()
            with subprocess.Popen([sys.executable, "-c", f"exit({code})"]) as child:
                yield child

        monkeypatch.setattr(jobs, "start", start)

    return replace


def make_job(folder: Path, **changes) -> Job:
    return Job(
        name="mine",
        folder=str(folder / "mine"),
        log=str(folder / "log"),
        config="",
        groups=(),
        budget=Budget(steps=1, minutes=0.0),
        device="cpu",
        catalogue=None,
        evaluate=(),
        cwd=str(folder),
        **changes,
    )


@pytest.mark.parametrize(
    ("code", "standing"),
    [(130, "stopped"), (75, "stopped"), (1, "failed"), (2, "failed")],
)
def test_after_the_deadline_only_an_interrupted_run_is_stopped(
    code, standing, exits_with, tmp_path, monkeypatch
):
    deadline = time.time() + 3600.0
    late = SimpleNamespace(**vars(time) | {"time": lambda: deadline + 1.0})
    exits_with(code, lambda: monkeypatch.setattr(jobs, "time", late))
    *_, ended = run_job(make_job(tmp_path, deadline=deadline))
    assert isinstance(ended, Ended) and ended.standing == standing


def test_a_run_that_never_began_in_time_is_stopped(tmp_path):
    *_, ended = run_job(make_job(tmp_path, deadline=time.time() - 1.0))
    assert isinstance(ended, Ended) and ended.standing == "stopped"


def test_the_log_of_a_run_that_failed_before_its_journal_comes_back(
    exits_with, tmp_path
):
    exits_with(2)
    *_, files, ended = run_job(make_job(tmp_path, away=True))
    assert files == Files(None, b"horizon: alas\n")
    assert ended == Ended(standing="failed", code=2, reason="alas")
