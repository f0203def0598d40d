"""The directory of a run: what it writes, and how it picks up again."""

import json

import numpy as np
import pytest
from evidence import GOOD

from horizon_rl.curriculum import CheckpointRef, Curriculum, Episodes
from horizon_rl.curriculum.evidence import ProbedEpisodes
from horizon_rl.runs.directory import PhaseTimes, RunDirectory, copy_record
from horizon_rl.runs.paths import (
    BUDGET,
    CHECKPOINTS,
    EVIDENCE,
    FILMS,
    JOURNAL,
    METRICS,
    TIMES,
    checkpoint_folder,
)
from horizon_rl.runs.telemetry import read_metrics
from horizon_rl.support.errors import InputError

TIMES_OF = PhaseTimes(phase=0, train_s=3.0, probe_s=2.0, settle_s=1.0)


@pytest.fixture
def directory(tmp_path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "run")


def fill(folder):
    (folder / "weights").write_text("w")


def entries(*checkpoints: CheckpointRef | None):
    curriculum = Curriculum(["mass"])
    for checkpoint in checkpoints:
        curriculum.tell(GOOD, checkpoint)
    return curriculum.entries


def test_directory_that_holds_a_run_is_refused(directory):
    directory.journal.write_text("{}\n")
    with pytest.raises(InputError, match="already holds a run"):
        RunDirectory.create(directory.path)


def test_evidence_is_written_by_name(directory):
    window = Episodes(np.array([0, 8]), np.array([8, 3]), np.array([0.1, 0.2]))
    probed = ProbedEpisodes(np.array([8]), np.array([0.3]), np.array([2.0]))
    directory.write_evidence(12, window, {"anchor": probed})
    with np.load(directory.path / EVIDENCE / "phase-00012.npz") as found:
        kept = {name: found[name].tolist() for name in found}
    assert kept["window_start"] == [0, 8] and kept["window_length"] == [8, 3]
    assert kept["window_error"] == pytest.approx([0.1, 0.2])
    assert kept["anchor_length"] == [8] and kept["anchor_return"] == [2.0]
    assert kept["anchor_error"] == pytest.approx([0.3])
    assert len(kept) == 6


def test_figure_that_is_not_finite_is_noted_as_null(directory):
    directory.write_metrics(
        {"phase": 0, "reward": float("nan"), "figures": {"a": float("inf"), "b": 1.0}}
    )
    (line,) = read_metrics(directory.path).lines
    assert line == {"phase": 0, "reward": None, "figures": {"a": None, "b": 1.0}}


def test_checkpoint_is_found_only_as_it_was_written(directory):
    checkpoint = directory.write_checkpoint(0, fill)
    folder = directory.find_checkpoint(checkpoint)
    assert folder == checkpoint_folder(directory.path, "phase-00000")
    (folder / "weights").write_text("v")
    with pytest.raises(InputError, match="phase-00000 is missing or damaged"):
        directory.find_checkpoint(checkpoint)
    with pytest.raises(InputError, match="phase-00001 is missing or damaged"):
        directory.find_checkpoint(CheckpointRef("phase-00001", checkpoint.digest))


def test_checkpoint_that_could_not_be_filled_leaves_no_folder(directory):
    def fail(folder):
        fill(folder)
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        directory.write_checkpoint(0, fail)
    assert not checkpoint_folder(directory.path, "phase-00000").exists()


def test_traces_of_a_phase_that_was_not_judged_are_removed(directory):
    kept = directory.write_checkpoint(0, fill)
    directory.write_checkpoint(1, fill)
    (directory.path / CHECKPOINTS / "mine").mkdir()
    for phase in (0, 0, 1):
        directory.write_metrics({"phase": phase})
    for phase in (0, 1):
        directory.write_times(
            PhaseTimes(phase=phase, train_s=3.0, probe_s=2.0, settle_s=1.0)
        )
    seconds = directory.pick_up(entries(kept))
    assert seconds == TIMES_OF.total_s == 6.0
    names = sorted(path.name for path in (directory.path / CHECKPOINTS).iterdir())
    assert names == ["mine", "phase-00000"]
    lines = (directory.path / METRICS).read_text().splitlines()
    assert [json.loads(line)["phase"] for line in lines] == [0, 0]
    assert len((directory.path / TIMES).read_text().splitlines()) == 1


@pytest.mark.parametrize("folder", ["", CHECKPOINTS, EVIDENCE, FILMS])
def test_what_a_killed_process_was_writing_is_removed(directory, folder):
    place = directory.path / folder
    place.mkdir(exist_ok=True)
    (place / ".aside-1-file").write_text("half")
    (place / ".aside-1-folder").mkdir()
    (place / "mine").write_text("whole")
    directory.pick_up([])
    assert [path.name for path in place.iterdir()] == ["mine"]


def test_only_the_last_checkpoints_are_kept(directory):
    kept = [directory.write_checkpoint(phase, fill) for phase in range(4)]
    directory.write_checkpoint(None, fill)
    (directory.path / CHECKPOINTS / "mine").mkdir()

    def names():
        return sorted(path.name for path in (directory.path / CHECKPOINTS).iterdir())

    everything = names()
    directory.keep_checkpoints(entries(*kept), 0)
    assert names() == everything
    directory.keep_checkpoints(entries(*kept), 2)
    assert names() == ["initial", "mine", "phase-00002", "phase-00003"]
    directory.pick_up(entries(*kept), 1)
    assert names() == ["initial", "mine", "phase-00003"]


def test_record_is_copied_without_weights(directory, tmp_path):
    directory.journal.write_text("{}\n")
    directory.write_times(TIMES_OF)
    directory.write_metrics({"phase": 0})
    directory.write_checkpoint(0, fill)
    none = np.zeros(0)
    directory.write_evidence(0, Episodes(none, none, none), {})
    copy_record(directory.path, tmp_path / "record")
    names = sorted(path.name for path in (tmp_path / "record").rglob("*"))
    assert names == [EVIDENCE, JOURNAL, "phase-00000.npz", TIMES]
    (directory.path / BUDGET).write_text("{}")
    copy_record(directory.path, tmp_path / "again")
    assert (tmp_path / "again" / BUDGET).exists()
