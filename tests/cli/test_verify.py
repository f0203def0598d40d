"""`horizon verify`: every file of a run, damaged or not."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from horizon_rl.cli import main
from horizon_rl.policies.shipped import model_names, shipped_runs
from horizon_rl.runs.journal import committed_folder

OLD_RUNS = Path(__file__).parents[1] / "fixtures" / "runs-schema-1"


@pytest.fixture
def run(trained_copy) -> Path:
    return trained_copy


def verify(capsys, *args) -> tuple[int, dict[str, dict]]:
    capsys.readouterr()
    code = main(["verify", *map(str, args), "--json"])
    found = json.loads(capsys.readouterr().out)
    return code, {finding["part"]: finding for finding in found}


def test_sound_run_is_verified_whole(run, capsys):
    code, found = verify(capsys, run)
    assert code == 0
    for part in ("journal", "checkpoints", "evidence", "verdicts", "telemetry"):
        assert found[part]["sound"] == found[part]["total"] > 0, part
    assert main(["verify", str(run)]) == 0
    assert "digests in the journal" in capsys.readouterr().out


def change_episodes(file: Path) -> None:
    """Write other episodes, sound in themselves."""
    with np.load(file) as found:
        arrays = dict(found)
    arrays["anchor_error"] = arrays["anchor_error"] + 1.0
    np.savez_compressed(file, **arrays)


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    # Not one byte alone: a zip file has some, as a date's, that nothing depends on.
    for place in range(len(content) // 2, min(len(content), len(content) // 2 + 80)):
        content[place] ^= 4
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("file", "damage", "part"),
    [
        ("checkpoints/initial/weights.safetensors", flip, "checkpoints"),
        ("checkpoints/initial/checkpoint.json", flip, "checkpoints"),
        ("checkpoints/initial/SHA256SUMS", flip, "checkpoints"),
        ("evidence/phase-00000.npz", flip, "evidence"),
        ("evidence/phase-00000.npz", change_episodes, "verdicts"),
        ("metrics.jsonl", flip, "telemetry"),
        ("times.jsonl", flip, "telemetry"),
    ],
)
def test_damage_is_named(run, file, damage, part, capsys):
    damage(run / file)
    code, found = verify(capsys, run)
    assert code == 1
    assert [name for name, finding in found.items() if finding["problems"]] == [part]
    assert main(["verify", str(run)]) == 1
    out, err = capsys.readouterr()
    assert "damaged" in out and "1 part(s) of" in err


def test_checkpoint_that_the_run_goes_on_from_must_be_there(run, capsys):
    folder = committed_folder(run)
    assert folder is not None
    shutil.rmtree(folder)
    code, found = verify(capsys, run)
    assert code == 1
    (problem,) = found["checkpoints"]["problems"]
    assert "is missing: the run goes on from it" in problem


def test_start_of_a_run_that_has_committed_nothing_must_be_there(run, capsys):
    journal = run / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().splitlines(keepends=True)[0])
    shutil.rmtree(run / "checkpoints")
    _, found = verify(capsys, run)
    assert "initial is missing" in found["checkpoints"]["problems"][0]


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize(
    ("names", "part"),
    [
        (["evidence"], "evidence"),
        (["evidence/phase-00001.npz"], "evidence"),
        (["metrics.jsonl", "times.jsonl"], "telemetry"),
        (["times.jsonl"], "telemetry"),
        # As in a run that comes with the package, which this one does not.
        (["checkpoints", "metrics.jsonl"], "checkpoints"),
    ],
)
def test_what_is_missing_is_a_problem(run, names, part, capsys):
    for name in names:
        remove(run / name)
    code, found = verify(capsys, run)
    assert code == 1
    assert "missing" in found[part]["problems"][0]
    assert found[part]["sound"] < found[part]["total"]


@pytest.mark.parametrize("name", ["metrics.jsonl", "times.jsonl"])
def test_telemetry_that_was_emptied_is_missing(run, name, capsys):
    (run / name).write_bytes(b"")
    code, found = verify(capsys, run)
    assert code == 1 and found["telemetry"]["sound"] == 1
    assert re.search(rf"{name}.* (missing|lacks)", found["telemetry"]["problems"][0])


def test_missing_file_does_not_hide_what_was_altered_in_the_next(run, capsys):
    (run / "evidence/phase-00000.npz").unlink()
    file = run / "evidence/phase-00001.npz"
    with np.load(file) as arrays:
        altered = {k: v * 0 if "error" in k else v for k, v in arrays.items()}
    np.savez_compressed(file, **altered)
    code, found = verify(capsys, run)
    assert code == 1
    assert "phase-00000.npz is missing" in found["evidence"]["problems"][0]
    assert "phase 1: " in found["verdicts"]["problems"][0]


@pytest.mark.parametrize("name", ["metrics.jsonl", "times.jsonl"])
def test_checksums_that_were_taken_out_are_missed(run, name, capsys):
    text = re.sub(r',"crc":"[0-9a-f]*"', "", (run / name).read_text())
    (run / name).write_text(text.replace('"train_s":0', '"train_s":9999'))
    code, found = verify(capsys, run)
    assert code == 1
    assert f"{name}: " in found["telemetry"]["problems"][0]


@pytest.mark.parametrize("name", ["training", "clock", "transformer"])
def test_run_of_an_older_version_is_sound_and_its_bare_lines_are_named(name, capsys):
    code, found = verify(capsys, OLD_RUNS / name)
    assert code == 0
    assert all(x["sound"] == x["total"] > 0 for x in found.values())
    assert "none in metrics.jsonl, times.jsonl" in found["telemetry"]["by"]


def test_altered_journal_is_refused_with_its_line(run, capsys):
    flip(run / "journal.jsonl")
    assert main(["verify", str(run)]) == 2
    assert "journal.jsonl:" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", [n for n in model_names() if shipped_runs()[n].is_dir()]
)
def test_shipped_run_is_sound_without_its_weights(name, capsys):
    code, found = verify(capsys, name)
    assert code == 0
    assert found["checkpoints"]["sound"] == 0
    assert found["verdicts"]["sound"] == found["verdicts"]["total"]


def test_rehearsal_is_verified_too(tmp_path, capsys):
    assert main(["rehearse", "--run", str(tmp_path / "r")]) == 0
    code, found = verify(capsys, tmp_path / "r")
    assert code == 0
    assert found["checkpoints"]["sound"] == found["checkpoints"]["total"] > 0
