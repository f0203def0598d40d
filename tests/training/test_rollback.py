"""Rollback: what was learnt in vain is gone to the bit, and is not learnt again."""

from typing import Any, cast

import pytest
import torch
from small_runs import (
    CALM,
    ITERATIONS,
    STORM,
    actions,
    assert_same,
    create,
    finish,
    journal,
    levels,
    poison,
    resume,
    run_phases,
    stormy,
    tiny,
    weights,
)

from horizon_rl.curriculum import Entry
from horizon_rl.domains.distribution import AtLevels
from horizon_rl.learning.checkpoint import load_checkpoint
from horizon_rl.runs.journal import committed_folder
from horizon_rl.support.errors import NonFiniteError
from horizon_rl.training.worlds import SimulatedWorlds


def blown_away(**changes):
    """Return settings whose only frontier fails, first at level 1."""
    return tiny(**{"groups": "disturbance", "gates": CALM, "min_step": 1.0, **changes})


@pytest.mark.parametrize("policy", ["mlp", "transformer"])
def test_absurd_candidate_leaves_the_checkpoint_to_the_bit(policy, tmp_path):
    run = create(blown_away(policy=policy), tmp_path)
    trained = None
    for event in run.events():
        if isinstance(event, Entry):
            kept = load_checkpoint(tmp_path / "checkpoints" / "phase-00000")
            assert_same(weights(run), kept.tensors)
            assert any(name.startswith("adam.") for name in kept.tensors)
            rate = kept.record.numbers["learning_rate"]
            assert run.learner.algorithm.learning_rate == rate
        elif event.number == 2 * ITERATIONS:
            trained = weights(run)
    entries = run.curriculum.entries
    assert actions(entries) == ["commit", "rollback", "rollback"]
    assert levels(entries)[1:] == [{"disturbance": 1.0}, {"disturbance": 0.4}]
    assert [entry.checkpoint is None for entry in entries] == [False, True, True]
    assert trained is not None and run.checkpoint.name == "phase-00000"
    changed = [k for k, v in trained.items() if not torch.equal(v, weights(run)[k])]
    assert {k.split(".")[0] for k in changed} == {"actor", "critic", "adam"}


def test_after_a_rollback_other_randomness_is_drawn():
    worlds = SimulatedWorlds(blown_away(), STORM, "cpu")
    same = AtLevels({"disturbance": 1.0})
    failed, again, retry = (worlds._draw(phase, same) for phase in (1, 1, 2))
    assert failed.torch_seed == again.torch_seed != retry.torch_seed
    assert failed.env_seed == again.env_seed != retry.env_seed
    for name in ("wrench", "start_qvel"):
        first, second, third = (
            getattr(draw.scenarios.pool, name) for draw in (failed, again, retry)
        )
        assert (first == second).all() and not (first == third).all(axis=1).any()


def test_next_phase_takes_other_actions_than_the_failed_one(tmp_path):
    run = create(blown_away(), tmp_path)
    first_actions, algorithm = [], cast(Any, run.learner.algorithm)
    act = algorithm.act

    def noted(obs):
        actions = act(obs)
        if algorithm.storage.step == 0:
            first_actions.append(actions.clone())
        return actions

    algorithm.act = noted
    finish(run)
    failed, following = first_actions[ITERATIONS], first_actions[2 * ITERATIONS]
    assert not (failed == following).any()


def test_rate_is_cut_by_every_rollback_also_where_the_run_was_resumed(tmp_path):
    cfg = blown_away(rollback_rate=0.7, max_phases=6, alpha=0.9, max_rungs=9)
    whole, cut = create(cfg, tmp_path / "whole"), create(cfg, tmp_path / "cut")
    assert actions(finish(whole)) == ["commit", *5 * ["rollback"]]
    kept = load_checkpoint(whole.checkpoint).record.numbers["learning_rate"]
    for number in range(6):
        run_phases(cut, 1)
        rate = cut.learner.algorithm.learning_rate
        assert rate == pytest.approx(kept * 0.7**number)
        cut = resume(cut.path)
        assert cut.learner.algorithm.learning_rate == rate
    assert journal(cut.path) == journal(whole.path)


def test_nan_on_a_frontier_is_rolled_back_and_the_run_goes_on(tmp_path):
    run = create(tiny(max_phases=4), tmp_path)
    poison(run, phase=1)
    for event in run.events():
        if isinstance(event, Entry) and event.proposal.phase == 1:
            kept = load_checkpoint(tmp_path / "checkpoints" / "phase-00000")
            assert_same(weights(run), kept.tensors)
            assert event.evidence.aborted and event.evidence.iterations == 3
            steps = 3 * run.learner.steps_per_iteration
            assert event.evidence.env_steps == steps, "the refused one took its steps"
    assert actions(run.curriculum.entries) == ["commit", "rollback", "commit", "commit"]
    assert all(value.isfinite().all() for value in weights(run).values())
    run.close()
    resumed = resume(tmp_path)
    assert resumed.curriculum.state.iterations == run.curriculum.state.iterations
    assert resumed.curriculum.state.env_steps == run.curriculum.state.env_steps


@pytest.mark.parametrize(
    ("method", "phase"),
    [("paper", 0), ("base", 0), ("base", 1), ("no-rollback", 1)],
)
def test_nan_where_nothing_is_rolled_back_stops_with_sound_weights(
    method, phase, tmp_path
):
    run = create(tiny(method=method), tmp_path)
    poison(run, phase=phase)
    with pytest.raises(NonFiniteError, match="rewards"):
        finish(run)
    run.close()
    assert all(value.isfinite().all() for value in weights(run).values())
    name = committed_folder(tmp_path)
    assert name and name.name == ("phase-00000" if phase else "initial")
    resumed = resume(tmp_path)
    assert resumed.curriculum.state.iterations == phase * ITERATIONS
    assert all(value.isfinite().all() for value in weights(resumed).values())
    assert len(finish(resumed)) == 3 - phase


def test_failed_range_stays_on_record(tmp_path):
    run = create(stormy(), tmp_path)
    finish(run)
    disturbance, com = run.curriculum.state.frontiers
    assert (disturbance.mastered, disturbance.failed, disturbance.rung) == (0, 0.2, 1)
    assert (com.mastered, com.status) == (1.0, "complete")
