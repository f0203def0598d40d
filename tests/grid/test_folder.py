"""The folder of a grid: held by one, and without what a killed one left."""

from pathlib import Path

import pytest

from horizon_rl.grid.folder import GridFolder
from horizon_rl.support import durable
from horizon_rl.support.errors import InputError, RunError
from horizon_rl.support.records import loads

RECORDS = Path(__file__).parents[2] / "studies/laptop.jsonl"
RESULT = {"key": None, "record": loads(RECORDS.read_bytes().splitlines()[0])}


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '"x"', '{"key": 1}', '{"key": 1, "record": {}}']
)
def test_damaged_result_counts_as_none(tmp_path, text):
    folder = GridFolder(tmp_path)
    with folder.hold():
        folder.write_result("a", RESULT)
        (tmp_path / "results/b.json").write_text(text)
        assert folder.read_result("b") is None
        assert folder.collect(["a", "b"]) == 1


@pytest.mark.parametrize("text", [b"x = [", b"\xff\xfe", b"[" * 100_000])
def test_damaged_settings_are_written_again_unless_the_run_has_begun(tmp_path, text):
    folder, settings = GridFolder(tmp_path), tmp_path / "settings" / "a.toml"
    with folder.hold():
        settings.write_bytes(text)
        folder.write_settings("a", {"steps": 10})
        assert settings.read_text() == "steps = 10\n"
        (tmp_path / "runs" / "a").mkdir()
        (tmp_path / "runs" / "a" / "journal.jsonl").touch()
        settings.write_bytes(text)
        with pytest.raises(InputError, match=r"a\.toml is damaged .*delete it"):
            folder.write_settings("a", {"steps": 10})


def test_records_that_cannot_be_written_are_named(tmp_path):
    folder = GridFolder(tmp_path)
    with folder.hold():
        folder.records.mkdir()
        with pytest.raises(RunError, match=r"cannot write .*records\.jsonl: Is a dir"):
            folder.collect([])


def test_new_folders_are_synced_in_their_parents(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(durable, "sync_directory", synced.append)
    out = tmp_path / "logs" / "grid"
    with GridFolder(out).hold():
        assert {p.name for p in out.iterdir() if p.is_dir()} == {
            *("runs", "settings", "logs", "results")
        }
    assert synced == [tmp_path, tmp_path / "logs", *[out] * 4]


def test_what_a_killed_grid_was_writing_is_removed(tmp_path):
    folder = GridFolder(tmp_path)
    with folder.hold():
        folder.write_result("a", RESULT)
    left = [tmp_path / x / ".aside-1-a" for x in ("", "settings", "results", "logs")]
    for file in left:
        file.write_text("half")
    with folder.hold():
        assert not any(file.exists() for file in left)
        assert folder.read_result("a") == RESULT
        left[0].write_text("of the grid at work")
        with pytest.raises(InputError, match="another grid"), folder.hold():
            pass
        assert left[0].exists()
