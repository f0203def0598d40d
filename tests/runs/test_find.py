"""What a run may be called on the command line: a directory, or a shipped policy."""

import os
import shutil
from pathlib import Path

import pytest

from horizon_rl.cli import main
from horizon_rl.cli.common import split_name
from horizon_rl.policies.shipped import RUN, model_path, shipped_runs
from horizon_rl.runs.find import find_journal, spell_out, spell_run, trained_runs
from horizon_rl.runs.paths import CHECKPOINTS, INITIAL

pytest.importorskip("torch")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A directory of one's own that is called like a shipped policy."""
    monkeypatch.chdir(tmp_path)
    Path("core-mlp").mkdir()
    return Path("core-mlp")


@pytest.mark.parametrize("command", ["status", "study", "diagnose", "report"])
def test_path_is_a_directory_and_a_name_the_shipped_policy(command, folder, capsys):
    assert main([command, "core-mlp"]) == 0
    capsys.readouterr()
    assert main([command, "./core-mlp"]) == 2
    assert "core-mlp holds no run" in capsys.readouterr().err


def test_path_of_a_journal_is_spelt_so_that_it_is_found_again(folder):
    shutil.copy(model_path("full-mlp") / RUN / "journal.jsonl", folder)
    shipped = shipped_runs()
    assert spell_run(folder, shipped) == "./core-mlp"
    found = find_journal(spell_run(folder, shipped), shipped)
    assert found == folder / "journal.jsonl"
    assert spell_run(Path("mine"), shipped) == "mine"


def test_missing_directory_is_named_as_it_was_given(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["status", "./core-mlp"]) == 2
    err = capsys.readouterr().err
    assert "there is no run ./core-mlp: did you mean core-mlp?" in err


def test_start_that_has_a_new_meaning_is_told_by_the_record(capsys):
    assert main(["status", "core-quiet"]) == 0
    assert "from core as it was after 99.7 M env steps" in capsys.readouterr().out


def test_shipped_run_cannot_go_on_and_says_where_it_stopped(capsys):
    assert main(["status", "core-quiet"]) == 0
    out = capsys.readouterr().out
    assert "stopped before phase 18 was judged\n" in out
    assert "ago" not in out and "Go on with" not in out


def test_runs_that_hold_a_policy_come_last_written_first(tmp_path):
    """`horizon play` lists them in its menu."""
    made = [tmp_path / name for name in ("old", "deep/new", "rehearsal")]
    for k, run in enumerate(made):
        shutil.copytree(model_path("core-mlp") / RUN, run)
        os.utime(run / "journal.jsonl", (k + 1, k + 1))
    for run in made[:2]:
        (run / CHECKPOINTS / INITIAL).mkdir(parents=True)
    assert trained_runs(tmp_path) == [made[1], made[0]]
    assert trained_runs(tmp_path, limit=1) == [made[1]]


@pytest.fixture
def made(tmp_path, monkeypatch) -> Path:
    """The last of two runs, and a rehearsal after it."""
    monkeypatch.chdir(tmp_path)
    for name in ("train/2026-01", "train/2026-02", "rehearse/2026-03"):
        shutil.copytree(model_path("core-mlp") / RUN, Path("logs", name))
    return Path("logs/train/2026-02")


@pytest.mark.parametrize("name", ["train/2026-02", "2026-02", "last"])
def test_run_goes_by_the_name_that_the_list_of_runs_shows(name, made):
    assert split_name(f"a={name}") == ("a", str(made))
    assert find_journal(name, shipped_runs()) == made / "journal.jsonl"
    assert main(["status", name]) == 0


def test_last_run_is_the_one_written_last_whatever_its_name(made):
    os.utime(made.parent / "2026-01" / "journal.jsonl")
    assert spell_out("last", ()) == str(made.parent / "2026-01")


def test_name_of_a_run_may_have_an_equals_sign(made):
    made.rename(made.with_name("lr=1"))
    assert split_name("lr=1") == (None, str(made.with_name("lr=1")))
    assert split_name("a=lr=1") == ("a", str(made.with_name("lr=1")))


@pytest.mark.parametrize("name", ["core", "stand", "./core", "nowhere", "policy.onnx"])
def test_other_names_mean_what_they_did(name, made):
    for shipped in ("core", "stand"):
        shutil.copytree(made, Path("logs", shipped))
    assert split_name(name) == (None, name)


def test_what_exists_goes_before_a_run_of_that_name(made):
    Path("2026-01").mkdir()
    assert spell_out("2026-01", ()) == "2026-01"


def test_report_names_the_run_that_was_the_last_one(made):
    assert main(["report", "x=last"]) == 0
    page = Path("report/index.html").read_text("utf-8")
    assert f"horizon report x={made}" in page and "x=last" not in page


def test_last_run_is_missed_where_there_is_none(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for command in (
        ["status", "last"],
        ["eval", "last"],
        ["export", "last", "x.onnx"],
        ["train", "--init", "last"],
    ):
        assert main(command) == 2
        assert "last: there is no run in logs/train" in capsys.readouterr().err
