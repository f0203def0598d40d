"""HORIZON on the real simulator: leaps, held phases, partial commits, rollbacks."""

import signal
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from killing import assert_ends_as, kill, run_in_child, wait
from small_runs import (
    GALE,
    ITERATIONS,
    actions,
    assert_same,
    create,
    finish,
    leaping,
    levels,
    read_evidence,
    resume,
    run_phases,
    tiny,
    weights,
)

from horizon_rl.curriculum import Entry, LeapCfg
from horizon_rl.evaluation.studies.recheck import recheck
from horizon_rl.learning.checkpoint import load_checkpoint
from horizon_rl.runs.journal import Journal, replay
from horizon_rl.runs.read import read_run
from horizon_rl.support.errors import InputError
from horizon_rl.training.learner import TorchLearner
from horizon_rl.training.protocols import Iteration

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL"),
    pytest.mark.filterwarnings("ignore:.*fork", "ignore:.*torn last line"),
]

ACTIONS = ["commit", "hold", "commit", "hold", "rollback", "hold"]
FAILED, PART = 4, 2
"""The phase that is rolled back after one on hold, and the commit that it restores."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """An uninterrupted run."""
    path = tmp_path_factory.mktemp("whole") / "run"
    assert actions(finish(create(leaping(), path, GALE))) == ACTIONS
    return path


@pytest.fixture(scope="module")
def entries(whole) -> tuple[Entry, ...]:
    return replay(whole / "journal.jsonl").entries


@pytest.fixture
def begun(tmp_path) -> Path:
    create(leaping(), tmp_path / "run", GALE).close()
    return tmp_path / "run"


def checkpoint(run: Path, phase: int | None):
    name = "initial" if phase is None else f"phase-{phase:05d}"
    return load_checkpoint(run / "checkpoints" / name)


def test_start_that_passes_is_not_trained(whole, entries):
    first = entries[0].evidence
    assert (first.iterations, first.episodes, first.length_se) == (0, 0, None)
    probed = read_evidence(whole, 0)
    assert first.length == pytest.approx(probed["candidate_length"].mean() / 8)
    assert first.tracking_error == first.candidate_error
    assert first.env_steps == sum(v.sum() for k, v in probed.items() if "length" in k)
    assert_same(checkpoint(whole, 0).tensors, checkpoint(whole, None).tensors)


def test_part_of_a_leap_is_committed_with_its_own_levels(whole, entries):
    assert levels(entries)[1:3] == [{"disturbance": 1.0}] * 2
    part = entries[PART].decision.levels
    assert part == {"disturbance": 0.75} == checkpoint(whole, PART).record.levels
    assert entries[PART + 1].proposal.mastered == part
    assert levels(entries)[PART + 1] == {"disturbance": 0.875}
    # What is on hold is saved with the levels that it is trained at.
    assert checkpoint(whole, 1).record.levels == {"disturbance": 1.0}


def test_rollback_after_a_held_phase_restores_the_last_commit(tmp_path):
    run = create(leaping(), tmp_path / "run", GALE)
    held = None
    for event in run.events():
        if isinstance(event, Entry) and event.decision.phase == FAILED - 1:
            held = weights(run)
        if isinstance(event, Entry) and event.decision.phase == FAILED:
            break
    run.close()
    assert actions(run.curriculum.entries)[-2:] == ["hold", "rollback"]
    kept = checkpoint(run.path, PART).tensors
    assert_same(weights(run), kept)
    assert held is not None
    assert not torch.equal(held["actor.mlp.0.weight"], kept["actor.mlp.0.weight"])
    assert run.checkpoint.name == f"phase-{PART:05d}"
    again = resume(run.path)
    assert_same(weights(again), kept)
    again.close()


def test_budget_is_kept_only_by_a_run_that_goes_on(begun):
    run_phases(resume(begun), FAILED)
    (begun / f"checkpoints/phase-{FAILED - 1:05d}/weights.safetensors").unlink()
    for _ in range(2):  # The journal is let go of.
        with pytest.raises(InputError, match="missing or damaged: cannot go on"):
            resume(begun, steps=10**6)
    assert not (begun / "budget.json").exists()


def test_held_phase_is_compared_with_the_commit_and_not_with_itself(entries):
    first, second = (entries[k].evidence for k in (FAILED - 1, FAILED))
    # A partial commit is measured as the next phase begins, and only then.
    assert (
        "reference_length" in first.probed and "reference_length" not in second.probed
    )
    assert first.reference_error is not None
    assert second.reference_error == first.reference_error


def test_weight_of_the_entropy_follows_the_env_steps_spent(tmp_path):
    cfg = leaping()
    run, found = create(cfg, tmp_path / "run", GALE), []
    coef = cast(Any, run.learner.algorithm).gradient_steps.entropy_coef
    for event in run.events():
        if isinstance(event, Iteration):
            expected = cfg.learner.ppo.entropy_at(event.env_steps / cfg.steps)
            assert coef.item() == pytest.approx(expected)
            found.append(coef.item())
    assert found == sorted(found, reverse=True) and 0.0 < found[-1] < 0.8 * found[0]


def test_resumed_after_every_phase_it_ends_as_if_never_stopped(begun, whole):
    for _ in ACTIONS:
        run_phases(resume(begun), 1)
    assert_ends_as(begun, whole)


@pytest.mark.parametrize("iteration", [1, 3])
@pytest.mark.parametrize("phase", [FAILED - 1, FAILED, FAILED + 1])
def test_killed_while_on_hold_and_resumed_equals_uninterrupted(
    phase, iteration, begun, whole
):
    # The first phase has no iterations.
    call = (phase - 1) * ITERATIONS + iteration
    pid = run_in_child(begun, lambda: kill(TorchLearner, "iterate", call))
    assert wait(pid) == -signal.SIGKILL
    assert len(replay(begun / "journal.jsonl").entries) == phase
    finish(resume(begun))
    assert_ends_as(begun, whole)


@pytest.mark.parametrize("after", [False, True])
def test_killed_at_the_line_of_a_held_phase(after, begun, whole):
    """Its checkpoint is there; without its line, it never happened."""

    def aim():
        kill(Journal, "append", FAILED, after=after)

    assert wait(run_in_child(begun, aim)) == -signal.SIGKILL
    finish(resume(begun))
    assert_ends_as(begun, whole)


def test_verdicts_are_found_again_by_size_of_body(tmp_path):
    """Sizes are on file with the episodes: gate C judges each."""
    leap = LeapCfg(
        ready=0.0, rungs=(0.5, 1.0), patience=2, margin=0.0, anchor_margin=0.0
    )
    cfg = tiny(
        method="horizon",
        robot="mixed",
        num_bodies=2,
        max_phases=4,
        leap=leap,
        probe_scenarios=48,
    )
    entries = finish(create(cfg, tmp_path / "run"))
    assert any(entry.decision.verdict.preserved is False for entry in entries)
    sizes = {"small", "medium", "large"}
    probed = entries[1].evidence.probed
    assert {f"candidate_error:{size}" for size in sizes} <= probed.keys()
    arrays = read_evidence(tmp_path / "run", 1)
    masks = np.stack([arrays[f"candidate_size:{size}"] for size in sorted(sizes)])
    assert (masks.sum(axis=0) == 1).all()
    found = recheck(read_run(tmp_path / "run" / "journal.jsonl"))
    assert (found.checked, found.agreed, found.disagreements) == (4, 4, ())
    assert found.gate_c > 0
