"""Files appear whole or not at all."""

import pytest

from horizon_rl.durable import (
    digest_directory,
    remove_unnamed,
    write_directory,
    write_file,
)


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
    for name in ("phase-1", "phase-2", ".aside-phase-3"):
        (tmp_path / name).mkdir()
    remove_unnamed(tmp_path, ["phase-1"])
    assert [p.name for p in tmp_path.iterdir()] == ["phase-1"]
    remove_unnamed(tmp_path / "not there", [])
