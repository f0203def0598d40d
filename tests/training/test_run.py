"""Runs: resumed to the bit, kept on disk, refused where they cannot go on."""

import pytest
from small_runs import (
    ITERATIONS,
    STORM,
    STORMY_ACTIONS,
    actions,
    assert_same,
    create,
    finish,
    journal,
    resume,
    run_phases,
    stormy,
    tiny,
    weights,
)

from horizon_rl.domains import paper_catalogue
from horizon_rl.learning.checkpoint import load_checkpoint
from horizon_rl.rehearsal import Rehearsal, RehearsalCfg
from horizon_rl.runs.journal import committed_folder, replay
from horizon_rl.runs.paths import journal_of
from horizon_rl.runs.verify import verify_run
from horizon_rl.support.durable import digest_directory
from horizon_rl.support.errors import InputError
from horizon_rl.training.context import read_context
from horizon_rl.training.protocols import Iteration

PAPER = paper_catalogue()


@pytest.mark.parametrize("policy", ["mlp", "transformer", "symmetric"])
def test_resumed_in_mid_phase_equals_uninterrupted_to_the_bit(policy, tmp_path):
    cfg = tiny(policy, method="base")
    whole, cut = create(cfg, tmp_path / "whole"), create(cfg, tmp_path / "cut")
    finish(whole)
    for event in cut.events():
        if isinstance(event, Iteration) and event.number == ITERATIONS + 2:
            break
    cut.close()
    resumed = resume(cut.path)
    assert resumed.curriculum.state.iterations == ITERATIONS
    events = list(resumed.events())
    numbers = [e.number for e in events if isinstance(e, Iteration)]
    assert numbers == list(range(ITERATIONS + 1, 3 * ITERATIONS + 1))
    assert_same(weights(resumed), weights(whole))
    assert journal(cut.path) == journal(whole.path)
    lines = (cut.path / "metrics.jsonl").read_text().splitlines()
    assert len(lines) == 3 * ITERATIONS


def test_resumed_after_every_verdict_equals_uninterrupted(tmp_path):
    whole, cut = (create(stormy(), tmp_path / name) for name in ("whole", "cut"))
    assert actions(finish(whole)) == STORMY_ACTIONS
    run_phases(cut, 1)
    for _ in range(4):
        cut = resume(cut.path)
        assert len(run_phases(cut, 1)) == 1
    assert journal(cut.path) == journal(whole.path)
    assert_same(weights(cut), weights(whole))


def test_killed_and_resumed_run_keeps_the_checkpoints_that_an_uninterrupted_one_keeps(
    tmp_path,
):
    cfg = stormy(keep_checkpoints=1)
    whole, cut = (create(cfg, tmp_path / name) for name in ("whole", "cut"))
    finish(whole)
    run_phases(cut, 4)  # The loop is left before it has cleared away.
    finish(resume(cut.path))
    for path in (whole.path, cut.path):
        kept = sorted(p.name for p in (path / "checkpoints").iterdir())
        assert kept == ["initial", "phase-00004"]
    assert journal(cut.path) == journal(whole.path)
    _, findings = verify_run(journal_of(cut.path))
    assert not any(finding.problems for finding in findings)


def test_stop_that_is_asked_for_comes_after_an_iteration_and_judges_nothing(tmp_path):
    run = create(tiny(), tmp_path)
    answers = iter([False, True])
    events = list(run.events(stop_asked=lambda: next(answers)))
    assert len(events) == 2 and run.stopped
    assert not replay(tmp_path / "journal.jsonl").entries


def test_checkpoints_on_disk_are_those_that_the_journal_names(tmp_path):
    run = create(stormy(), tmp_path)
    entries = finish(run)
    named = [entry.checkpoint for entry in entries if entry.checkpoint]
    folders = tmp_path / "checkpoints"
    assert sorted(p.name for p in folders.iterdir()) == ["initial"] + [
        f"phase-{k:05d}" for k in (0, 2, 4)
    ]
    for checkpoint in named:
        assert digest_directory(folders / checkpoint.name) == checkpoint.digest
    assert committed_folder(tmp_path) == folders / "phase-00004" == run.checkpoint
    record = load_checkpoint(run.checkpoint).record
    assert record.levels == {"disturbance": 0.0, "com": 1.0}
    assert record.counters == {
        "iteration": 5 * ITERATIONS,
        "ranks": 1,
        "phase": 5,
        "env_steps": run.curriculum.state.env_steps,
    }


def test_run_is_known_by_its_start_before_its_first_commit(tmp_path):
    run = create(tiny(seed=3), tmp_path)
    assert run.checkpoint == committed_folder(tmp_path)
    assert run.checkpoint.name == "initial"
    context = read_context(tmp_path)
    assert (context.train, context.ranks) == (tiny(seed=3), 1)
    assert context.catalogue == STORM


def test_directory_that_holds_a_run_is_refused(tmp_path):
    create(tiny(), tmp_path).close()
    with pytest.raises(InputError, match="already holds a run"):
        create(tiny(), tmp_path)


def test_run_that_is_alive_cannot_be_resumed(tmp_path):
    run = create(tiny(), tmp_path)
    with pytest.raises(InputError, match="in use by another process"):
        resume(tmp_path)
    run.close()
    resume(tmp_path).close()


def test_damaged_settings_are_refused(tmp_path):
    run = create(tiny(), tmp_path)
    run.close()
    (tmp_path / "journal.jsonl").write_text("{\n")
    with pytest.raises(InputError, match="journal.jsonl:1: not JSON"):
        resume(tmp_path)
    with pytest.raises(InputError, match="holds no run: there is no journal"):
        resume(tmp_path / "nowhere")


def test_run_of_another_kind_is_refused(tmp_path):
    Rehearsal.create(RehearsalCfg(), PAPER, tmp_path).close()
    with pytest.raises(InputError, match="holds a run, but not of training"):
        resume(tmp_path)


@pytest.mark.parametrize("name", ["initial", "phase-00000"])
def test_checkpoint_that_is_not_the_one_named_is_refused(name, tmp_path):
    run = create(tiny(max_phases=1), tmp_path)
    if name != "initial":
        finish(run)
    run.close()
    (tmp_path / "checkpoints" / name / "weights.safetensors").unlink()
    for _ in range(2):  # The journal is let go of.
        with pytest.raises(InputError, match=f"{name} is missing or damaged"):
            resume(tmp_path)


def test_checkpoint_that_no_line_names_is_removed(tmp_path):
    run = create(tiny(max_phases=1), tmp_path)
    finish(run)
    checkpoints = tmp_path / "checkpoints"
    for name in ("phase-00001", ".aside-1-phase-00001", "mine"):
        (checkpoints / name).mkdir()
    resume(tmp_path).close()
    kept = sorted(path.name for path in checkpoints.iterdir())
    assert kept == ["initial", "mine", "phase-00000"]


def test_init_takes_the_weights_and_neither_counters_nor_rate(tmp_path):
    first = create(tiny(), tmp_path / "first")
    finish(first)
    cfg = tiny(seed=5)
    second = create(cfg, tmp_path / "second", init=first.checkpoint)
    second.close()
    told = pytest.approx(cfg.learner.ppo.learning_rate)
    for run in (second, resume(second.path)):
        assert_same(weights(run), weights(first))
        assert run.curriculum.state.iterations == run.curriculum.state.env_steps == 0
        assert run.learner.algorithm.learning_rate == told
        assert run.start == f"from {first.checkpoint}"


@pytest.mark.parametrize("robot", ["generated", "mixed"])
def test_many_bodies_train_and_are_probed(robot, tmp_path):
    cfg = tiny(robot=robot, num_bodies=4, levels="contact=0.5,reset=0.5", max_phases=2)
    entries = finish(create(cfg, tmp_path))
    assert actions(entries) == ["commit", "commit"]
    assert entries[1].evidence.checkpoint_error is not None


def test_checkpoint_of_another_policy_is_refused_before_anything_is_written(tmp_path):
    run = create(tiny("mlp", max_phases=1), tmp_path / "mlp")
    finish(run)
    with pytest.raises(InputError, match="is of another policy: 'actor.*is missing"):
        create(tiny("transformer"), tmp_path / "other", init=run.checkpoint)
    assert not (tmp_path / "other").exists()
