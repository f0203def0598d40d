"""`horizon cache`: how much evaluations keep on disk, and what is deleted."""

import json
import os
import time
from pathlib import Path

import pytest

from horizon_rl.cli import main

DAY_S = 86_400.0


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """Three results of 1 MB, unused for 0, 10 and 20 days, and things that are none."""
    monkeypatch.setenv("HORIZON_CACHE", str(tmp_path))
    for days in (0, 10, 20):
        file = tmp_path / "ab" / f"{days}.npz"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(bytes(1_000_000))
        used = time.time() - days * DAY_S - 1.0
        os.utime(file, (used, used))
    (tmp_path / "ab" / ".aside-999999999-x.npz").touch()
    (tmp_path / "trusted").mkdir()
    (tmp_path / "trusted" / "note").touch()
    (tmp_path / "mine.npz").touch()
    return tmp_path


def run(capsys, *args: str) -> dict:
    assert main(["cache", *args, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def left(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.rglob("*") if path.is_file())


def test_it_says_how_much_there_is_and_deletes_nothing(cache, capsys):
    before = left(cache)
    found = run(capsys)
    assert (found["results"], found["bytes"], found["deleted"]) == (3, 3_000_000, 0)
    assert 20 * DAY_S < found["oldest_s"] < 20.1 * DAY_S
    assert left(cache) == before
    assert main(["cache"]) == 0
    assert "3.0 MB" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "kept"),
    [
        (["--days", "15"], ["0.npz", "10.npz"]),
        (["--megabytes", "1"], ["0.npz"]),
        (["--days", "5", "--megabytes", "100"], ["0.npz"]),
        (["--clear"], []),
    ],
)
def test_it_deletes_what_was_unused_longest_and_nothing_else(cache, capsys, args, kept):
    found = run(capsys, *args)
    assert (found["results"], found["deleted"]) == (len(kept), 3 - len(kept))
    assert left(cache) == sorted([*kept, "mine.npz", "note"])


def test_folder_that_is_not_there_is_an_empty_cache(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HORIZON_CACHE", str(tmp_path / "none"))
    assert run(capsys, "--clear")["results"] == 0
    assert not (tmp_path / "none").exists()
