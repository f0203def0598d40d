"""Rehearsals: what they show, and that they stop and resume without a trace."""

import numpy as np
import pytest

from horizon_rl.curriculum import CurriculumCfg, phase_rng
from horizon_rl.domains import paper_catalogue
from horizon_rl.rehearsal import (
    Rehearsal,
    RehearsalCfg,
    SyntheticCfg,
    compare,
    run_to_end,
    summarise,
)
from horizon_rl.rehearsal.synthetic import success_rate
from horizon_rl.runs.journal import replay
from horizon_rl.runs.paths import JOURNAL
from horizon_rl.support.errors import InputError

PAPER = paper_catalogue()


def test_rehearsal_meets_every_kind_of_verdict_and_ends():
    rehearsal = run_to_end(RehearsalCfg(), PAPER)
    summary = summarise(rehearsal)
    assert summary["ended"] == "no frontier is left to try"
    assert summary["commits"] > 10
    assert summary["rollbacks"] > 10
    assert summary["boundaries"] > 0
    kinds = {d["kind"] for d in summary["decisions"]}
    assert kinds == {"baseline", "coarse", "recovery", "retry"}
    assert summary["phases"] == len(summary["decisions"])
    for group, coverage in summary["coverage"].items():
        assert coverage > PAPER.coverage({})[group]


def test_summary_adds_up():
    summary = summarise(run_to_end(RehearsalCfg(), PAPER))
    steps = RehearsalCfg().learner.phase_env_steps
    assert summary["env_steps"] == summary["phases"] * steps
    assert summary["env_steps_rolled_back"] == summary["rollbacks"] * steps
    assert summary["commits"] + summary["rollbacks"] <= summary["phases"]


def test_policy_that_is_held_keeps_what_it_learnt():
    # At this rate one phase does not reach the baseline: only what adds up does.
    slow = RehearsalCfg(learner=SyntheticCfg(rate=0.1))
    entries = run_to_end(slow, PAPER).curriculum.entries
    actions = [e.decision.action for e in entries[:30]]
    assert actions[:3] == ["hold", "hold", "hold"] and "commit" in actions


def test_phases_do_not_share_their_noise():
    draws = [phase_rng(0, phase).random() for phase in range(5)]
    draws += [phase_rng(1, 0).random(), np.random.default_rng(0).random()]
    assert len(set(draws)) == 7


def test_failed_level_is_mastered_later():
    entries = run_to_end(RehearsalCfg(), PAPER).curriculum.entries
    failed = {
        (e.decision.frontier, e.decision.candidate)
        for e in entries
        if e.decision.action == "rollback"
    }
    mastered = {
        (e.decision.frontier, e.decision.candidate)
        for e in entries
        if e.decision.action == "commit"
    }
    assert failed & mastered


@pytest.mark.parametrize("seed", range(5))
def test_rollback_keeps_the_policy_sound_and_its_absence_ruins_it(seed):
    def final(method):
        rehearsal = run_to_end(RehearsalCfg(method=method, seed=seed), PAPER)
        baseline = dict.fromkeys(rehearsal.curriculum.state.mastered, 0.0)
        return success_rate(rehearsal.policy, baseline, rehearsal.cfg.learner)

    assert final("horizon") > 0.95
    assert final("no-rollback") < 0.5
    assert final("wide") < 0.5


def test_comparison_shows_when_rollback_pays():
    rows = {(r.learner, r.method): r for r in compare(RehearsalCfg(), PAPER, range(3))}
    assert len(rows) == 15
    assert rows["forgiving", "no-rollback"].all > 0.95  # No need for it there.
    for learner in ("as given", "fragile"):
        horizon, without = rows[learner, "horizon"], rows[learner, "no-rollback"]
        assert horizon.baseline > 0.95 > without.baseline
        assert horizon.own > without.own
        assert without.level == 1.0  # It claims everything.


def test_run_on_disk_equals_the_run_in_memory(tmp_path):
    cfg = RehearsalCfg(seed=4)
    rehearsal = Rehearsal.create(cfg, PAPER, tmp_path / "run")
    list(rehearsal.phases())
    rehearsal.close()
    in_memory = run_to_end(cfg, PAPER)
    decisions = [e.decision for e in in_memory.curriculum.entries]
    assert [e.decision for e in replay(tmp_path / "run" / JOURNAL).entries] == decisions
    assert rehearsal.policy == in_memory.policy


def test_interrupted_after_any_phase_and_resumed_equals_uninterrupted(tmp_path):
    cfg = RehearsalCfg(seed=1, curriculum=CurriculumCfg(max_phases=25))
    whole = run_to_end(cfg, PAPER)
    rehearsal = Rehearsal.create(cfg, PAPER, tmp_path)
    for _ in range(25):
        next(rehearsal.phases())
        rehearsal.close()
        rehearsal = Rehearsal.resume(tmp_path)
    rehearsal.close()
    assert rehearsal.policy == whole.policy
    decisions = [e.decision for e in rehearsal.curriculum.entries]
    assert decisions == [e.decision for e in whole.curriculum.entries]


def test_every_named_checkpoint_exists_and_no_other(tmp_path):
    rehearsal = Rehearsal.create(RehearsalCfg(), PAPER, tmp_path)
    list(rehearsal.phases())
    rehearsal.close()
    named = {e.checkpoint.name for e in rehearsal.curriculum.entries if e.checkpoint}
    assert {p.name for p in (tmp_path / "checkpoints").iterdir()} == named


def test_damaged_or_missing_checkpoint_is_an_error_that_names_it(tmp_path):
    rehearsal = Rehearsal.create(RehearsalCfg(), PAPER, tmp_path)
    for _ in range(5):
        next(rehearsal.phases())
    rehearsal.close()
    last = rehearsal.curriculum.checkpoint
    assert last is not None
    file = tmp_path / "checkpoints" / last.name / "policy.json"
    file.write_text(file.read_text().replace("health", "wealth"))
    with pytest.raises(InputError, match=f"{last.name} is missing or damaged"):
        Rehearsal.resume(tmp_path)
    file.unlink()
    file.parent.rmdir()
    with pytest.raises(InputError, match=f"{last.name} is missing or damaged"):
        Rehearsal.resume(tmp_path)


def test_directory_without_a_run_cannot_be_resumed(tmp_path):
    with pytest.raises(InputError, match="holds no run: there is no journal"):
        Rehearsal.resume(tmp_path)
