"""A full disk ends the run, and harms nothing that was on it."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from small_runs import (
    actions,
    assert_same,
    create,
    finish,
    journal,
    resume,
    run_phases,
    tiny,
    weights,
)

from horizon_rl.learning.checkpoint import load_checkpoint
from horizon_rl.runs.journal import Journal, committed_folder
from horizon_rl.support.errors import InputError
from horizon_rl.training.run import Run

FSYNCS = 8
"""Of a commit: evidence 2, checkpoint 5, journal 1."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """An uninterrupted run of two commits."""
    path = tmp_path_factory.mktemp("whole") / "run"
    assert actions(finish(create(tiny(max_phases=2), path))) == ["commit"] * 2
    return path


@pytest.fixture(scope="module")
def half(tmp_path_factory) -> Path:
    """The same run after its first."""
    path = tmp_path_factory.mktemp("half") / "run"
    run_phases(create(tiny(max_phases=2), path), 1)
    return path


def no_space(*_) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


class FullFile:
    """A file on a disk that takes no more than a few bytes."""

    def __init__(self, file):
        self._file = file

    def write(self, data: bytes) -> None:
        self._file.write(data[:100])
        no_space()

    def __getattr__(self, name: str):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()


def fill_weights(run: Run, monkeypatch) -> None:
    write = Path.write_bytes

    def full(self, data):
        write(self, data[:100])
        no_space()

    monkeypatch.setattr(Path, "write_bytes", full)


def fill_record(run: Run, monkeypatch) -> None:
    monkeypatch.setattr(Path, "write_text", no_space)


def fill_evidence(run: Run, monkeypatch) -> None:
    monkeypatch.setattr("horizon_rl.support.durable.open", full_open, raising=False)


def full_open(path, mode):
    file = open(path, mode)
    return FullFile(file) if ".npz" in str(path) else file


def fill_journal(run: Run, monkeypatch) -> None:
    ours = run.curriculum._log
    assert isinstance(ours, Journal)
    monkeypatch.setattr(ours, "_file", FullFile(ours._file))


def fail_sync(number: int) -> Callable:
    def fail(run: Run, monkeypatch) -> None:
        sync, calls = os.fsync, []

        def full(fd):
            calls.append(fd)
            return no_space() if len(calls) == number else sync(fd)

        monkeypatch.setattr(os, "fsync", full)

    return fail


FAILURES = {
    "weights": fill_weights,
    "record": fill_record,
    "evidence": fill_evidence,
    "journal": fill_journal,
} | {f"sync {n}": fail_sync(n) for n in range(1, FSYNCS + 1)}


@pytest.mark.parametrize("what", FAILURES)
def test_disk_full_in_a_commit_leaves_the_last_one_and_the_run_can_go_on(
    what, whole, half, tmp_path, monkeypatch
):
    path = tmp_path / "run"
    shutil.copytree(half, path)
    run = resume(path)
    before = weights(run)
    with monkeypatch.context() as patch:
        FAILURES[what](run, patch)
        with pytest.raises(OSError, match="No space left"):
            finish(run)
    run.close()
    assert journal(path) == journal(half)
    committed = committed_folder(path)
    assert committed is not None and committed.name == "phase-00000"
    assert_same(load_checkpoint(committed).tensors, before)
    assert len(finish(resume(path))) == 1
    assert journal(path) == journal(whole)
    names = sorted(file.name for file in path.rglob("*"))
    assert names == sorted(file.name for file in whole.rglob("*"))


def test_commit_syncs_that_often(half, tmp_path, monkeypatch):
    path = tmp_path / "run"
    shutil.copytree(half, path)
    run, sync, calls = resume(path), os.fsync, []
    monkeypatch.setattr(os, "fsync", lambda fd: (calls.append(fd), sync(fd)))
    finish(run)
    assert len(calls) == FSYNCS


def test_disk_full_at_the_start_leaves_no_run(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", no_space)
        with pytest.raises(OSError, match="No space left"):
            create(tiny(), tmp_path / "run")
    assert committed_folder(tmp_path / "run") is None
    with pytest.raises(InputError, match="holds no run: there is no journal"):
        resume(tmp_path / "run")
