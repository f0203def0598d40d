"""The folder of a grid: held by one, and without what a killed one left."""

from pathlib import Path

import pytest

from horizon_rl.grid.folder import Asked, GridFolder
from horizon_rl.support import durable
from horizon_rl.support.errors import InputError, RunError
from horizon_rl.support.records import loads

RECORDS = Path(__file__).parents[2] / "studies/laptop.jsonl"
RECORD = loads(RECORDS.read_bytes().splitlines()[0])
RESULT = {"key": None, "record": RECORD}
ASKED = Asked.of(RECORD["settings"], {"budget": {"steps": 10}, "evaluate": []})


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '"x"', '{"key": 1}', '{"key": 1, "record": {}}']
)
def test_damaged_result_counts_as_none(tmp_path, text):
    folder = GridFolder(tmp_path)
    with folder.hold():
        folder.write_result("a", RESULT)
        (tmp_path / "results/b.json").write_text(text)
        assert folder.read_result("b") is None
        assert folder.collect({"a": ASKED, "b": ASKED}) == 1


@pytest.mark.parametrize("text", [b"x = [", b"\xff\xfe", b"[" * 100_000])
def test_damaged_settings_are_written_again_unless_the_run_has_begun(tmp_path, text):
    folder, settings = GridFolder(tmp_path), tmp_path / "settings" / "a.toml"
    with folder.hold():
        settings.write_bytes(text)
        folder.write_settings({"a": {"steps": 10}})
        assert settings.read_text() == "steps = 10\n"
        (tmp_path / "runs" / "a").mkdir()
        (tmp_path / "runs" / "a" / "journal.jsonl").touch()
        settings.write_bytes(text)
        with pytest.raises(InputError, match=r"a\.toml is damaged .*delete it"):
            folder.write_settings({"a": {"steps": 10}})


def test_records_that_cannot_be_written_are_named(tmp_path):
    folder = GridFolder(tmp_path)
    with folder.hold():
        folder.records.mkdir()
        with pytest.raises(RunError, match=r"cannot write .*records\.jsonl: Is a dir"):
            folder.collect({})


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


@pytest.mark.parametrize(
    ("key", "settings", "collected"),
    [
        (ASKED.key, {}, [True]),
        (None, {}, [False]),  # It has not ended.
        (ASKED.key, {"steps": 7, "device": "cpu"}, [True]),  # These may change.
        ({**ASKED.key, "budget": {"steps": 20}}, {}, [False]),
        ({**ASKED.key, "evaluate": [{"severity": [1.0]}]}, {}, [False]),
        (ASKED.key, {"gamma": 0.9}, []),  # Of another run, whose folder is gone.
    ],
)
def test_result_counts_as_the_study_is_now(tmp_path, key, settings, collected):
    folder = GridFolder(tmp_path)
    record = {**RECORD, "settings": {**RECORD["settings"], **settings}}
    with folder.hold():
        folder.write_result("a", {"key": key, "record": record})
        assert folder.is_done("a", ASKED) == (collected == [True])
        assert folder.collect({"a": ASKED}) == len(collected)
    lines = folder.records.read_bytes().splitlines()
    assert [loads(line)["finished"] for line in lines] == collected


def test_settings_are_kept_of_all_runs_or_of_none(tmp_path):
    folder = GridFolder(tmp_path)
    with folder.hold():
        folder.write_settings({"a": {"gamma": 0.9}, "b": {"gamma": 0.9}})
        folder.run("b").mkdir()
        (folder.run("b") / "journal.jsonl").touch()
        with pytest.raises(InputError, match="run b .*other settings: gamma"):
            folder.write_settings({"a": {"gamma": 0.99}, "b": {"gamma": 0.99}})
    assert (tmp_path / "settings/a.toml").read_text() == "gamma = 0.9\n"
