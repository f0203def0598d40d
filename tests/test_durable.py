"""Files appear whole or not at all."""

import errno
import os
import subprocess
from threading import Thread

import pytest

from horizon_rl.support import durable
from horizon_rl.support.durable import (
    create_file,
    digest_directory,
    make_run_directory,
    remove_unnamed,
    write_directory,
    write_file,
)
from horizon_rl.support.errors import InputError


def test_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_file(path, b"old")

    def full(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_failed_directory_leaves_nothing(tmp_path):
    def fill(folder):
        (folder / "weights").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_directory(tmp_path / "checkpoint", fill)
    assert list(tmp_path.iterdir()) == []


def test_directory_nobody_named_is_replaced(tmp_path):
    path = tmp_path / "phase-1"
    write_directory(path, lambda folder: (folder / "a").write_bytes(b"1"))
    digest = write_directory(path, lambda folder: (folder / "a").write_bytes(b"22"))
    assert (path / "a").read_bytes() == b"22"
    assert digest_directory(path) == digest


def test_digest_changes_with_names_and_contents(tmp_path):
    (tmp_path / "a").write_bytes(b"1")
    first = digest_directory(tmp_path)
    (tmp_path / "a").write_bytes(b"2")
    second = digest_directory(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    assert len({first, second, digest_directory(tmp_path)}) == 3


def test_unnamed_directories_are_removed(tmp_path):
    for name in ("phase-1", "phase-2", ".aside-phase-3", "my-best"):
        (tmp_path / name).mkdir()
    (tmp_path / "phase-4").symlink_to(tmp_path / "my-best")
    remove_unnamed(tmp_path, r"phase-\d", ["phase-1"])
    # What somebody else put there stays.
    left = sorted(p.name for p in tmp_path.iterdir())
    assert left == ["my-best", "phase-1", "phase-4"]
    remove_unnamed(tmp_path / "not there", r"phase-\d", [])


def test_only_one_of_two_creates_a_file(tmp_path):
    create_file(tmp_path / "file", b"first")
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "file", b"second")
    assert (tmp_path / "file").read_bytes() == b"first"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_run_directory_that_holds_anything_is_refused(tmp_path):
    make_run_directory(tmp_path / "new", "journal")
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="is not empty"):
        make_run_directory(tmp_path, "journal")
    (tmp_path / "journal").write_text("{}")
    with pytest.raises(InputError, match="already holds a run"):
        make_run_directory(tmp_path, "journal")


def test_start_takes_away_what_a_killed_one_left_and_nothing_else(tmp_path):
    gone = subprocess.Popen(["true"])
    gone.wait()
    # Another process, which is alive, may be starting a run at the same place.
    names = [f".aside-{number}-journal" for number in (gone.pid, os.getppid())]
    for folder in (tmp_path, tmp_path / "checkpoints"):
        folder.mkdir(exist_ok=True)
        for name in names:
            (folder / name).write_text("half")
    (tmp_path / "checkpoints" / f".aside-{gone.pid}-initial").mkdir()
    (tmp_path / "journal").touch()  # Of a start on a file system without hard links.
    make_run_directory(tmp_path, "journal", "checkpoints")
    left = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*"))
    assert left == [names[1], "checkpoints", f"checkpoints/{names[1]}"]


def test_new_directory_is_synced_in_its_parent(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(durable, "sync_directory", synced.append)
    make_run_directory(tmp_path / "logs" / "train" / "run", "journal")
    assert synced == [tmp_path, tmp_path / "logs", tmp_path / "logs" / "train"]


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP])
def test_one_of_two_creates_a_file_where_there_are_no_hard_links(
    tmp_path, monkeypatch, code
):
    def refuse(*args):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", refuse)
    test_only_one_of_two_creates_a_file(tmp_path)


def test_start_waits_for_one_that_has_only_made_the_journals_name(
    tmp_path, monkeypatch
):
    """Without hard links the journal is empty for a moment: it is no leftover then."""
    pytest.importorskip("fcntl")
    replace, others = os.replace, []

    def start() -> None:
        try:
            make_run_directory(tmp_path, "journal")
        except InputError as error:
            others.append(str(error))

    thread = Thread(target=start)

    def replace_later(aside, path):
        thread.start()
        thread.join(0.3)
        replace(aside, path)

    def refuse(*args):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(os, "replace", replace_later)
    create_file(tmp_path / "journal", b"first")
    thread.join()
    assert len(others) == 1 and "already holds a run" in others[0]
    assert (tmp_path / "journal").read_bytes() == b"first"
