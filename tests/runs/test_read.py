"""A run as its files tell it."""

import numpy as np
import pytest
from evidence import FALLS, GOOD

from horizon_rl.curriculum import CheckpointRef, Episodes, Paper
from horizon_rl.runs.budget import Budget, write_budget
from horizon_rl.runs.directory import PhaseTimes, RunDirectory
from horizon_rl.runs.journal import create_curriculum
from horizon_rl.runs.paths import EVIDENCE
from horizon_rl.runs.read import find, read_run
from horizon_rl.support.errors import InputError

TRAIN = {
    "method": "joint",
    "seed": 4,
    "steps": 5000,
    "num_envs": 8,
    "task": {"episode_s": 0.16},
    "learner": {"ppo": {"num_steps": 5}},
}
NONE = np.zeros(0)


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a run of two phases, a commit and a rollback."""

    def make(context):
        directory = RunDirectory.create(tmp_path / "run")
        curriculum = create_curriculum(directory.journal, ["mass"], Paper(), context)
        for phase, evidence in enumerate((GOOD, FALLS)):
            directory.write_evidence(phase, Episodes(NONE, NONE, NONE), {})
            times = PhaseTimes(phase=phase, train_s=3.0, probe_s=2.0, settle_s=1.0)
            directory.write_times(times)
            name = CheckpointRef("phase-00000", "0" * 64)
            curriculum.tell(evidence, None if phase else name)
        return directory, curriculum

    return make


def test_run_of_training(write):
    directory, curriculum = write({"train": TRAIN, "ranks": 2})
    run = read_run(directory.journal)
    assert run.locked, "it is alive"
    curriculum.close()
    run = read_run(directory.journal)
    assert not run.locked
    assert (run.kind, run.name, run.seed, run.label) == (
        "training",
        "joint",
        4,
        "joint seed 4",
    )
    assert run.longest == 8 and run.steps_per_iteration == 80
    assert run.budget == Budget(steps=5000) and not run.finished
    assert [e.decision.action for e in run.entries] == ["commit", "rollback"]
    assert set(run.evidence) == {0, 1} and not run.damaged
    assert run.phase_times().sum() == 12.0
    assert not read_run(directory.journal, evidence=False).evidence


def test_budget_last_given_says_whether_it_is_finished(write):
    directory, curriculum = write({"train": TRAIN})
    curriculum.close()
    write_budget(directory.path, Budget(minutes=0.2))
    run = read_run(directory.journal)
    assert run.finished and run.spent == "budget of 0.2 minutes spent"


def test_kinds_of_runs(write):
    directory, curriculum = write({"rehearsal": {"seed": 1}, "catalogue": {}})
    curriculum.close()
    run = read_run(directory.journal)
    assert (run.kind, run.name, run.longest) == ("rehearsal", "run", None)
    with pytest.raises(InputError, match=":1: Catalogue: field"):
        _ = run.catalogue


def test_loop_of_one_s_own_has_no_settings(write):
    directory, curriculum = write({})
    curriculum.close()
    run = read_run(directory.journal, "mine")
    assert (run.kind, run.label, run.catalogue) == ("other", "mine", None)
    assert run.steps_per_iteration is None and not run.finished
    assert run.coverage() == {"mass": None}


def test_file_of_evidence_that_cannot_be_read_is_named(write):
    directory, curriculum = write({"train": TRAIN})
    curriculum.close()
    (directory.path / EVIDENCE / "phase-00001.npz").write_bytes(b"PK\3\4")
    run = read_run(directory.journal)
    assert set(run.evidence) == {0} and set(run.damaged) == {1}
    assert "evidence/phase-00001.npz cannot be read" in run.damaged[1]


def test_times_of_phases_on_record_count_once(write):
    directory, curriculum = write({"train": TRAIN})
    curriculum.close()
    directory.write_times(PhaseTimes(phase=1, train_s=30.0, probe_s=0.0, settle_s=0.0))
    directory.write_times(PhaseTimes(phase=2, train_s=1.0, probe_s=1.0, settle_s=1.0))
    assert read_run(directory.journal).phase_times().tolist() == [[3, 2, 1], [30, 0, 0]]


def test_values_of_the_wrong_kind_are_not_found():
    data = {"a": {"b": 1}}
    assert find(data, int, "a", "b") == 1
    assert find(data, str, "a", "b") is None
    assert find(data, int, "a", "b", "c") is None and find(None, int, "a") is None


def test_catalogue_of_somebodys_own_loop_is_left_alone(write):
    directory, curriculum = write({"catalogue": "mine.toml"})
    curriculum.close()
    run = read_run(directory.journal)
    assert run.kind == "other" and run.catalogue is None
    assert set(run.coverage().values()) == {None}
