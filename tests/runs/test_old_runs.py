"""Runs written before methods were in the journal: read, judged, resumed.

All are as version 0.1 wrote them. `training`: three of five phases, with early looks;
`transformer` and `clock`: two of three; `rehearsal`: twelve phases of `rehearsal-whole`.
"""

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("mujoco")
pytest.importorskip("torch")

from evidence import GOOD
from small_runs import actions, create, finish, journal, resume, run_phases, tiny

from horizon_rl.cli import main
from horizon_rl.curriculum import Clock, EarlyCfg, Horizon, Paper
from horizon_rl.evaluation.studies.recheck import recheck
from horizon_rl.rehearsal import Rehearsal
from horizon_rl.runs.journal import create_curriculum, replay, resume_curriculum
from horizon_rl.runs.lines import SCHEMA, parse_line, to_line
from horizon_rl.runs.read import read_run

RUNS = Path(__file__).parents[1] / "fixtures" / "runs-schema-1"
ACTIONS = {
    "training": ["commit", "rollback", "commit"],
    "transformer": ["commit", "commit"],
    "clock": ["commit", "commit"],
}


@pytest.fixture
def copied(tmp_path):
    """Return a function that copies an old run to where it may be written."""
    return lambda name: Path(shutil.copytree(RUNS / name, tmp_path / name))


@pytest.mark.parametrize("name", ACTIONS)
def test_journal_replays_with_the_method_that_its_settings_imply(name):
    so_far = replay(RUNS / name / "journal.jsonl")
    assert so_far.header.schema == 1
    assert actions(so_far.entries) == ACTIONS[name]
    method = so_far.header.make_method()
    if name == "clock":
        assert isinstance(method, Clock)
    else:
        looks = (0.5,) if name == "training" else ()
        assert isinstance(method, Paper) and method.early.looks == looks
        assert method.early == EarlyCfg(
            looks=looks, min_episodes=method.early.min_episodes
        )
    assert so_far.state.reference is not None
    assert so_far.state.reference.phase == len(so_far.entries) - 1


def test_horizon_of_schema_2_is_the_papers_rule(tmp_path):
    path = tmp_path / "journal.jsonl"
    context = {"train": {"method": "horizon", "seed": 3}}
    curriculum = create_curriculum(path, ["mass"], Paper(), context)
    for _ in range(2):
        curriculum.tell(GOOD)
    curriculum.close()
    header, *lines = path.read_bytes().splitlines(keepends=True)
    old = {**parse_line(header, ""), "schema": 2, "method": "horizon"}
    path.write_bytes(to_line(old) + b"".join(lines))
    run = read_run(path)
    assert run.journal.state == curriculum.state
    assert isinstance(run.journal.header.make_method(), Paper)
    assert run.name == run.summary.method == "paper"
    # As it was written: lines are only ever appended.
    again = resume_curriculum(path)
    again.tell(GOOD)
    again.close()
    assert path.read_bytes().startswith(to_line(old))
    assert len(replay(path).entries) == 3


def test_horizon_of_today_is_not_taken_for_the_papers_rule(tmp_path):
    path = tmp_path / "journal.jsonl"
    context = {"train": {"method": "horizon"}}
    create_curriculum(path, ["mass"], Horizon(), context).close()
    header = replay(path).header
    assert isinstance(header.make_method(), Horizon) and header.context == context


def test_leaps_that_were_planned_by_survival_alone_still_are(tmp_path):
    """Settings that an older version did not have mean what it did."""
    path = tmp_path / "journal.jsonl"
    create_curriculum(path, ["mass"], Horizon()).close()
    header, *lines = path.read_bytes().splitlines(keepends=True)
    old = parse_line(header, "")
    for name in ("smoothing", "weigh_error"):
        del old["settings"]["leap"][name]
    path.write_bytes(to_line(old) + b"".join(lines))
    method = replay(path).header.make_method()
    assert isinstance(method, Horizon)
    assert (method.leap.smoothing, method.leap.weigh_error) == (0.0, False)


def test_reference_is_what_the_last_commit_showed():
    entries = replay(RUNS / "training" / "journal.jsonl").entries
    state = replay(RUNS / "training" / "journal.jsonl").state
    assert state.reference is not None
    assert state.reference.error == entries[2].evidence.candidate_error
    assert entries[2].evidence.reference_error == entries[0].evidence.candidate_error


@pytest.mark.parametrize("name", [*ACTIONS, "rehearsal"])
def test_status_summarises_it(name, capsys):
    assert main(["status", str(RUNS / name), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    kind = "rehearsal" if name == "rehearsal" else "training"
    assert (shown["kind"], shown["standing"]) == (kind, "stopped")
    assert shown["method"] == ("linear" if name == "clock" else "paper")
    assert shown["phases"] == len(ACTIONS.get(name, range(12)))
    assert shown["resume"] and shown["checkpoint"]["exists"]
    assert main(["status", str(RUNS / name)]) == 0
    assert f"{shown['phases']} phases" in capsys.readouterr().out


def test_study_computes_its_verdicts_again(tmp_path):
    file = tmp_path / "study.json"
    runs = [f"{name}={RUNS / name}" for name in ACTIONS]
    assert main(["study", *runs, "--json", str(file)]) == 0
    found = {
        run["name"]: run["recheck"] for run in json.loads(file.read_text())["runs"]
    }
    for name, verdicts in ACTIONS.items():
        check = found[name]
        assert check["phases"] == check["checked"] == check["agreed"] == len(verdicts)
        assert check["disagreements"] == []


def test_checkpoints_are_evaluated(tmp_path, monkeypatch, short_evaluations):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file, names = tmp_path / "results.json", ["training", "transformer"]
    runs = [f"{name}={RUNS / name}" for name in names]
    options = ["--episodes", "2", "--severity", "0", "--device", "cpu", "--no-stand"]
    assert main(["eval", *runs, *options, "--json", str(file)]) == 0
    found = json.loads(file.read_text())
    assert [result["policy"] for result in found] == names
    assert all(c["episodes"] == 2 for r in found for c in r["columns"].values())


@pytest.mark.parametrize("name", ["training", "transformer"])
def test_resumed_it_goes_on_to_its_end(name, copied):
    path = copied(name)
    before, done = journal(path), len(ACTIONS[name])
    total = 5 if name == "training" else 3
    run = resume(path)
    assert run.curriculum.state.phase == done
    assert len(finish(run)) == total - done
    assert journal(path).startswith(before)
    so_far = replay(path / "journal.jsonl")
    assert so_far.state.ended == f"budget of {total} phases spent"
    assert so_far.entries[done].evidence.reference_error is not None
    found = recheck(read_run(path / "journal.jsonl"))
    assert found.checked == found.agreed == total and not found.disagreements


@pytest.mark.parametrize("schema", [2, 3, SCHEMA])
def test_last_commit_of_an_older_version_is_measured_again(schema, tmp_path):
    """Schema 2 drew the pushes of its frozen scenarios otherwise."""
    run_phases(create(tiny(), tmp_path / "run"), 1)
    path = tmp_path / "run" / "journal.jsonl"
    header, *lines = path.read_bytes().splitlines(keepends=True)
    header = to_line({**parse_line(header, ""), "schema": schema})
    path.write_bytes(header + b"".join(lines))
    run = resume(tmp_path / "run")
    reference = run.curriculum.state.reference
    run.close()
    assert reference and (reference.error is None) == (schema < 3)


def test_resumed_rehearsal_takes_the_decisions_of_the_whole(copied):
    path = copied("rehearsal")
    rehearsal = Rehearsal.resume(path)
    assert len(rehearsal.curriculum.entries) == 12
    list(rehearsal.phases())
    rehearsal.close()
    whole = replay(RUNS / "rehearsal-whole" / "journal.jsonl").entries
    found = replay(path / "journal.jsonl").entries
    assert len(found) == len(whole) > 12
    for ours, theirs in zip(found, whole, strict=True):
        assert ours.decision == theirs.decision
        assert ours.proposal == theirs.proposal
        assert ours.checkpoint == theirs.checkpoint
