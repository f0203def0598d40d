"""The synthetic learner behaves as its description says."""

from dataclasses import replace

import pytest

from horizon_rl.rehearsal.synthetic import (
    SyntheticCfg,
    SyntheticPolicy,
    fall_rate,
    novice,
    overreach,
    success_rate,
    train,
)
from horizon_rl.support.errors import InputError

CFG = SyntheticCfg(ceiling_low=1.0, ceiling_high=1.0)


def policy(**skill):
    return SyntheticPolicy(skill=skill, ceiling=dict.fromkeys(skill, 1.0))


def test_skill_grows_when_trained_just_beyond_it():
    before = policy(mass=0.3)
    after = train(before, {"mass": 0.38}, CFG)
    assert after.skill["mass"] > 0.35
    assert after.health > 0.95


def test_collapse_teaches_nothing_and_damages_for_good():
    before = policy(mass=0.3)
    broken = train(before, {"mass": 0.9}, CFG)
    assert broken.skill["mass"] == pytest.approx(0.3, abs=1e-3)
    assert broken.health < 0.3
    # Even training at level 0 again does not bring it back within ten phases.
    for _ in range(10):
        broken = train(broken, {"mass": 0.0}, CFG)
    assert broken.health < 0.8
    assert fall_rate(broken, {"mass": 0.3}, CFG) > fall_rate(before, {"mass": 0.3}, CFG)


def test_level_far_inside_the_skill_teaches_nothing():
    before = policy(mass=0.6)
    assert train(before, {"mass": 0.1}, CFG).skill == before.skill


def test_skill_never_passes_its_ceiling():
    learner = SyntheticPolicy(skill={"mass": 0.4}, ceiling={"mass": 0.45})
    for _ in range(20):
        learner = train(learner, {"mass": 0.45}, CFG)
    assert learner.skill["mass"] == pytest.approx(0.45)


def test_wide_levels_elsewhere_leave_less_room():
    learner = policy(mass=0.5, com=0.5)
    alone = overreach(learner, {"mass": 0.5, "com": 0.0}, CFG)
    both = overreach(learner, {"mass": 0.5, "com": 0.5}, CFG)
    assert both - alone == pytest.approx(0.5 * CFG.coupling)


def test_gain_in_one_group_transfers_to_the_others():
    before = policy(mass=0.3, com=0.2)
    after = train(before, {"mass": 0.38, "com": 0.0}, CFG)
    assert before.skill["com"] < after.skill["com"] < 0.25


def test_edge_of_the_reach_costs_precision():
    before = policy(mass=0.3)
    gentle, bold = (train(before, {"mass": x}, CFG) for x in (0.31, 0.42))
    assert bold.imprecision > gentle.imprecision
    assert success_rate(bold, {"mass": 0.0}, CFG) <= 1.0


def test_novice_cannot_do_the_baseline_but_can_learn_it():
    learner = novice(("mass", "com"), CFG, seed=0)
    baseline = {"mass": 0.0, "com": 0.0}
    assert fall_rate(learner, baseline, CFG) > 0.5
    for _ in range(3):
        learner = train(learner, baseline, CFG)
    assert fall_rate(learner, baseline, CFG) < 0.1


def test_survival_beyond_the_reach_hides_where_training_damages():
    before, levels = policy(mass=0.3), {"mass": 0.3 + 1.2 * CFG.reach}
    deceptive = replace(CFG, survival=1.5)
    assert fall_rate(before, levels, CFG) > 0.95
    assert fall_rate(before, levels, deceptive) < 0.1
    assert train(before, levels, deceptive) == train(before, levels, CFG)
    assert train(before, levels, deceptive).health < 0.5


@pytest.mark.parametrize(
    "changes",
    [
        {"reach": 0.0},
        {"survival": 0.0},
        {"probe_env_steps": 0},
        {"rate": 1.5},
        {"noise": -0.1},
        {"ceiling_low": 2.0},
    ],
)
def test_impossible_learner_is_refused(changes):
    with pytest.raises(InputError):
        SyntheticCfg(**changes)
