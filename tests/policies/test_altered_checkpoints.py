"""Every reader of a checkpoint refuses one that is not what was written."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from horizon_rl.cli import main
from horizon_rl.learning.checkpoint import RECORD, WEIGHTS
from horizon_rl.policies.load import load_policy
from horizon_rl.policies.shipped import model_names, model_path
from horizon_rl.runs.checkpoints import verify_checkpoint
from horizon_rl.support.durable import SUMS
from horizon_rl.support.errors import InputError
from horizon_rl.viewer.levels import read_mastered


@pytest.fixture
def run(trained_copy) -> Path:
    return trained_copy


def last(run: Path) -> Path:
    return sorted((run / "checkpoints").glob("*"))[-1]


def move_further(folder: Path) -> None:
    """Let every action move the joints further than was trained: a valid record."""
    file = folder / RECORD
    record = json.loads(file.read_text())
    assert record["config"]["task"]["action_scale"] == 0.25
    record["config"]["task"]["action_scale"] = 0.95
    file.write_text(json.dumps(record))


def sum_up(folder: Path) -> None:
    """Write checksums that fit, as a forger would."""
    files = [f for f in sorted(folder.iterdir()) if f.name != SUMS]
    sums = (f"{hashlib.sha256(f.read_bytes()).hexdigest()}  {f.name}\n" for f in files)
    (folder / SUMS).write_text("".join(sums))


@pytest.mark.parametrize("forged", [False, True])
@pytest.mark.parametrize(
    "command",
    [
        ["eval", "{}", "--suite", "ood", "--episodes", "2"],
        ["export", "{}", "out.onnx"],
        ["train", "--preset", "smoke", "--init", "{}", "--run", "new"],
        ["train", "--resume", "{run}", "--steps", "99999"],
        ["play", "{}", "--video", "a.gif", "--seconds", "0.1"],
    ],
)
def test_altered_record_is_refused_by_every_command(
    run, command, forged, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    move_further(last(run))
    if forged:
        sum_up(last(run))
    for source in (run, last(run)):
        args = [part.format(source, run=run) for part in command]
        assert main(args) == 2
        assert "damaged" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run"]


def test_altered_copy_is_refused_without_its_run(run, tmp_path):
    copy = Path(shutil.copytree(last(run), tmp_path / "copy"))
    assert verify_checkpoint(copy) == "its checksums"
    assert load_policy(str(copy)).action_scale == 0.25
    move_further(copy)
    for read in (load_policy, read_mastered):
        with pytest.raises(InputError, match=f"{RECORD} is damaged"):
            read(str(copy))


def test_checkpoint_of_an_older_version_is_known_by_its_run(run, tmp_path):
    # It has no checksums; on its own only the weights are verified.
    folder = last(run)
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    (copy / SUMS).unlink()
    assert verify_checkpoint(copy) == "nothing"
    assert load_policy(str(copy)).action_scale == 0.25
    (folder / SUMS).unlink()
    assert verify_checkpoint(folder) == "its run's journal"
    move_further(folder)
    with pytest.raises(InputError, match="journal.jsonl names"):
        load_policy(str(run))


def test_no_mutation_of_a_copy_goes_unnoticed(run, tmp_path):
    copy = Path(shutil.copytree(last(run), tmp_path / "copy"))
    rng = np.random.default_rng(0)
    for name in (RECORD, WEIGHTS, SUMS):
        file, whole = copy / name, (copy / name).read_bytes()
        for _ in range(30):
            changed = bytearray(whole)
            changed[rng.integers(len(whole))] ^= 1 << rng.integers(8)
            file.write_bytes(changed)
            with pytest.raises(InputError, match="damaged"):
                load_policy(str(copy))
        for length in (0, len(whole) // 2):
            file.write_bytes(whole[:length])
            with pytest.raises(InputError, match="damaged"):
                load_policy(str(copy))
        file.write_bytes(whole)
    load_policy(str(copy))


@pytest.mark.parametrize("name", model_names())
def test_shipped_policy_has_its_checksums(name):
    assert verify_checkpoint(model_path(name)) == "its checksums"
