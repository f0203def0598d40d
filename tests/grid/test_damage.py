"""A run whose files are damaged, or cannot be kept, fails alone."""

import os
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from signal import SIGTERM
from typing import TextIO

import pytest

pytest.importorskip("mujoco", reason="needs the extra train")
from grids import read_records, write_study

from horizon_rl.cli import main
from horizon_rl.grid import local
from horizon_rl.grid.job import Ended, Files, Job, Message, Started, run_job
from run_files import stop


@pytest.fixture
def grid(tmp_path, monkeypatch) -> Callable[..., int]:
    """A grid of two runs that takes no time; `fixed_s0` may do something else."""
    study = write_study(tmp_path, [0], steps=350)

    def work(job: Job, *_) -> Iterator[Message]:
        yield Started("here")
        stop(Path(job.folder))
        yield Files(None, b"its words")
        yield Ended(standing="finished")

    def start(fixed: Callable[..., Iterator[Message]] = work, *flags: str) -> int:
        monkeypatch.setattr(
            local,
            "run_job",
            lambda job, *args: (fixed if job.name == "fixed_s0" else work)(job, *args),
        )
        return main(["grid", str(study), "--out", str(tmp_path / "out"), *flags])

    return start


def test_a_damaged_run_fails_alone_at_once_and_by_name(grid, tmp_path, capsys):
    journal = stop(tmp_path / "out" / "runs" / "fixed_s0") / "journal.jsonl"
    journal.write_bytes(b"x" + journal.read_bytes())
    assert grid(run_job, "--dry-run") == 0
    assert grid(run_job) == 1
    out, err = capsys.readouterr()
    assert "it goes on from its last phase" not in out
    assert f"failed: fixed_s0: {journal}:1: " in out
    assert "1 run(s) failed" in err
    assert [*read_records(tmp_path / "out")] == ["horizon_s0"]


def test_a_damaged_run_that_dies_has_judged_no_phases(grid, tmp_path, capsys):
    journal = stop(tmp_path / "out" / "runs" / "fixed_s0") / "journal.jsonl"
    journal.write_bytes(b"x" + journal.read_bytes())
    died = Ended(standing="failed", code=1, reason="no worker")
    assert grid(lambda *_: iter([Started("here"), died])) == 1
    assert capsys.readouterr().out.count("fixed_s0: no worker; it goes on") == 3
    assert [*read_records(tmp_path / "out")] == ["horizon_s0"]


@pytest.fixture(params=[("pipe", 1), ("pipe", -1), ("/dev/full", 1), ("", 1)])
def nowhere(request) -> Iterator[TextIO | None]:
    """A file that takes nothing: a closed pipe or a full disk; None: closed itself."""
    place, buffering = request.param
    if not place:
        yield None
        return
    if place == "pipe":
        read, place = os.pipe()
        os.close(read)
    elif not os.path.exists(place):
        pytest.skip(f"no {place} here")
    with open(place, "w", buffering) as file:
        yield file
        file.flush()  # As Python does at its end: what fails then is exit code 120.


def test_where_nothing_can_be_printed_runs_go_on_unseen(grid, nowhere, tmp_path):
    with redirect_stdout(nowhere):
        assert grid() == 0
    assert {*read_records(tmp_path / "out")} == {"fixed_s0", "horizon_s0"}


def test_where_nothing_can_be_printed_a_failed_run_is_in_the_exit_code(
    grid, nowhere, tmp_path
):
    failed = Ended(standing="failed", code=2, reason="alas")
    with redirect_stdout(nowhere):
        assert grid(lambda *_: iter([failed])) == 1
    assert [*read_records(tmp_path / "out")] == ["horizon_s0"]


def test_where_nothing_can_be_printed_sigterm_asks_for_another_try(
    grid, nowhere, monkeypatch
):
    monkeypatch.setattr("horizon_rl.cli.grid._execute", lambda *_: SIGTERM)
    with redirect_stdout(nowhere):
        assert grid() == 75


def test_a_stop_that_cannot_be_told_loses_no_record(grid, nowhere, tmp_path):
    def work(job: Job, *_) -> Iterator[Message]:
        yield Started("here")
        os.kill(os.getpid(), SIGTERM)
        stop(Path(job.folder))
        yield Ended(standing="finished")

    with redirect_stdout(nowhere), redirect_stderr(nowhere):
        assert grid(work) == 75
    assert "fixed_s0" in read_records(tmp_path / "out")


@pytest.mark.parametrize("name", ["results/fixed_s0.json", "logs/fixed_s0.log"])
def test_a_run_whose_files_cannot_be_written_fails_alone(name, grid, tmp_path, capsys):
    in_the_way = tmp_path / "out" / name
    in_the_way.mkdir(parents=True)
    assert grid() == 1
    reason = f"cannot keep its files in {tmp_path / 'out'}: Is a directory"
    assert f"failed: fixed_s0: {reason}" in capsys.readouterr().out
    assert [*read_records(tmp_path / "out")] == ["horizon_s0"]
    in_the_way.rmdir()
    assert grid(lambda *_: iter([Started("here"), Ended(standing="finished")])) == 0
