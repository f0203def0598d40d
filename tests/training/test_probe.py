"""Probes: a fair comparison with the checkpoint, apart from training."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from horizon_rl.training.probe import Prober, Reference
from small_runs import (
    LENIENT,
    STORM,
    actions,
    assert_same,
    create,
    finish,
    read_evidence,
    resume,
    stormy,
    tiny,
    weights,
)

from horizon_rl.curriculum import Verdict
from horizon_rl.learning import Ppo
from horizon_rl.policies.learned import LearnedPolicy
from horizon_rl.task import EpisodeTable
from horizon_rl.training import phase
from horizon_rl.training.config import TrainCfg
from horizon_rl.training.run import find_reference

STRICT = replace(LENIENT, error_margin=0.0, return_margin=0.0)


def assert_equal(a: EpisodeTable, b: EpisodeTable) -> None:
    for name in ("length", "tracking_error", "yaw_error", "returns", "cause"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), name)


def make(cfg: TrainCfg) -> tuple[Trainer, Prober]:
    trainer = Trainer(cfg, STORM, device="cpu")
    return trainer, Prober(trainer, "cpu")


@pytest.mark.parametrize("policy", ["mlp", "transformer"])
def test_policy_measured_as_candidate_and_as_checkpoint_is_the_same_to_the_bit(policy):
    trainer, prober = make(tiny(policy))
    mastered, reference, expected = {"com": 0.0}, None, None
    tried = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    commits_at = {0, 1, 3, 4}  # Both places of the checkpoint's set, and rollbacks.
    for number, level in enumerate(tried):
        levels = {"com": level}
        sets = prober.run(
            LearnedPolicy(trainer.learner.actor),
            phase=number,
            levels=levels,
            mastered=mastered,
            reference=reference,
        )
        assert ("checkpoint" in sets) == (reference is not None)
        if expected is not None:
            assert_equal(sets["checkpoint"], expected)
            assert (sets["candidate"].returns != expected.returns).all()
        if number in commits_at:
            before = reference.commits + 1 if reference else 0
            reference = Reference(number, before, error=None, value=None)
            mastered, expected = levels, sets["candidate"]


def test_run_that_learns_nothing_never_fails_against_itself(tmp_path, monkeypatch):
    def learn_nothing(self) -> dict[str, float]:
        self.storage.clear()
        return {}

    monkeypatch.setattr(Ppo, "update", learn_nothing)
    run = create(tiny(gates=STRICT, max_phases=6), tmp_path)
    entries = finish(run)
    assert actions(entries) == ["commit"] * 6
    for entry in entries[1:]:
        found = entry.evidence
        assert found.checkpoint_error == found.reference_error
        assert found.checkpoint_return == found.reference_return
    assert len({entry.evidence.candidate_error for entry in entries}) == 6
    assert len({entry.evidence.anchor_return for entry in entries}) == 1


def test_reference_measured_again_after_a_resume_is_the_one_on_record(tmp_path):
    """The scenarios are drawn anew from the journal alone."""
    finish(create(stormy(), tmp_path))
    run = resume(tmp_path)
    reference = find_reference(run.curriculum.entries)
    assert reference is not None and run._prober is not None
    assert (reference.phase, reference.commits) == (4, 2)
    sets = run._prober.run(
        LearnedPolicy(run.trainer.learner.actor),
        phase=5,
        levels={"disturbance": 0.1, "com": 1.0},
        mastered={"disturbance": 0.0, "com": 1.0},
        reference=reference,
    )
    kept = read_evidence(tmp_path, 4)
    np.testing.assert_array_equal(sets["checkpoint"].returns, kept["candidate_return"])
    assert (
        np.mean(sets["checkpoint"].tracking_error, dtype=np.float64) == reference.error
    )


def test_scenarios_of_probes_and_of_training_are_disjoint():
    # As many of each: from the same stream they would be the same.
    trainer, prober = make(tiny(rows_per_env=1, anchor_scenarios=8))
    acting, drawn = LearnedPolicy(trainer.learner.actor), {}
    for number in range(4):
        levels = {"com": 0.1 * number}
        prober.run(
            acting,
            phase=number,
            levels=levels,
            mastered={"com": 0.0},
            reference=Reference(0, 0, None, None) if number else None,
        )
        drawn[f"training {number}"] = trainer._draw(number, levels).scenarios
        drawn |= {f"probe {stream}": s for stream, s in prober._drawn.items()}
    assert len(drawn) == 4 + 4 + 1
    starts = np.concatenate([s.pool.start_qvel for s in drawn.values()])
    assert len(np.unique(starts, axis=0)) == len(starts)


def test_probe_stays_within_its_levels():
    trainer, prober = make(tiny(probe_scenarios=64, anchor_scenarios=64))
    prober.run(
        LearnedPolicy(trainer.learner.actor),
        phase=3,
        levels={"mass": 1.0, "com": 0.5},
        mastered={"mass": 0.5, "com": 0.5},
        reference=Reference(1, 0, None, None),
    )
    heaviest = [s.pool.instances["mass.scale"].max() for s in prober._drawn.values()]
    anchor, checkpoint, candidate = heaviest
    assert anchor <= 1.1 < checkpoint <= 3.05 < candidate <= 5.0


@pytest.mark.parametrize("policy", ["mlp", "transformer"])
def test_probing_does_not_disturb_training(policy, tmp_path):
    probed = create(tiny(policy, method="base"), tmp_path / "probed")
    cfg = tiny(policy, method="base", probe_scenarios=0, anchor_scenarios=0)
    plain = create(cfg, tmp_path / "plain")
    finish(probed)
    finish(plain)
    assert_same(weights(probed), weights(plain))


@pytest.mark.parametrize("policy", ["mlp", "transformer"])
def test_probing_in_mid_phase_does_not_disturb_training(policy, tmp_path, monkeypatch):
    """Looks that settle nothing, with probes that would end a phase if they could."""
    plain = create(tiny(policy, phase_iterations=8), tmp_path / "plain")
    finish(plain)
    cfg = tiny(policy, phase_iterations=8)
    cfg = replace(cfg, early=replace(cfg.early, looks=(0.5, 0.75), min_episodes=2))
    failed = Verdict(feasible=False, preserved=None, score=0.0, reason="")
    monkeypatch.setattr(phase, "judge", lambda *_, **__: failed)
    looked = create(cfg, tmp_path / "looked")
    finish(looked)
    steps = [r.curriculum.state.env_steps for r in (plain, looked)]
    assert steps[1] > steps[0]
    assert_same(weights(looked), weights(plain))


def test_probes_leave_the_normalisers_alone():
    trainer, prober = make(tiny())
    before = {k: v.clone() for k, v in trainer.learner.actor.state_dict().items()}
    prober.run(
        LearnedPolicy(trainer.learner.actor),
        phase=0,
        levels={},
        mastered={},
        reference=None,
    )
    after = trainer.learner.actor.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())
