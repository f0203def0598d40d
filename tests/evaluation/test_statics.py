"""Which scenarios statics alone makes impossible, against torques worked out by hand."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from horizon_rl.evaluation import statics
from horizon_rl.evaluation.array_cache import ArrayCache
from horizon_rl.evaluation.evaluate import Evaluator
from horizon_rl.evaluation.results import impossible_share, success_table
from horizon_rl.evaluation.statics import impossible
from horizon_rl.policies.load import load_policy

EXACT = """
episodes = 1
[columns.a.parameters]
mass.scale = 1.0
com.offset = {offset}
contact = {{ static_friction = {friction}, dynamic_friction = {friction} }}
disturbance = {{ external_force = 0.0, external_torque = 0.0 }}
actuation.effort_limit = {effort}
"""


@pytest.fixture
def make_pool(make_suite):
    def make(offset=(0.0, 0.0, 0.0), friction=0.0, effort=40.0):
        text = EXACT.format(
            offset=[float(x) for x in offset], friction=friction, effort=effort
        )
        return make_suite(text).frozen["a"].scenarios(1).pool

    return make


@pytest.fixture
def default_stance_only(monkeypatch):
    monkeypatch.setattr(statics, "BENDS", (1.0,))
    monkeypatch.setattr(statics, "SWINGS", (0.0,))
    monkeypatch.setattr(statics, "LEANS", (0.0,))


def with_effort(pool, torque: float):
    return replace(pool, effort=np.full_like(pool.effort, torque))


def least_effort(pool) -> float:
    """Find the torque limit from which on a pool of one can be held, by bisection."""
    low, high = 0.0, 200.0
    assert not impossible(with_effort(pool, high))[0]
    while high - low > 1e-3:
        middle = (low + high) / 2.0
        if impossible(with_effort(pool, middle))[0]:
            low = middle
        else:
            high = middle
    return high


def stand_level(robot):
    """Put the robot in its default pose, trunk level, and let MuJoCo see it."""
    data = mujoco.MjData(robot.model)
    data.qpos[:] = robot.model.key("stand").qpos
    data.qpos[3:7] = (1.0, 0.0, 0.0, 0.0)
    mujoco.mj_forward(robot.model, data)
    return data


def torque_by_hand(robot) -> float:
    """Return the largest joint torque with a quarter of the weight on each foot.

    Power balance, joint by joint: what the motor does, tau dq, lifts the links (the
    engine's own gravity torque) less what the ground's force does at the foot. A
    foot's rise by a joint is taken by a small turn of it.
    """
    model, data = robot.model, stand_level(robot)
    weight = 9.81 * model.body_subtreemass[robot.trunk_body_id]
    gravity = data.qfrc_bias[robot.dof_adr] * robot.joint_sign
    torques = []
    for joint in range(12):
        heights = []
        for turn in (1e-5, -1e-5):
            moved = stand_level(robot)
            moved.qpos[robot.qpos_adr[joint]] += turn * robot.joint_sign[joint]
            mujoco.mj_kinematics(model, moved)
            heights.append(moved.geom_xpos[robot.foot_geom_ids[joint // 3], 2])
        rise = (heights[0] - heights[1]) / 2e-5
        torques.append(gravity[joint] - rise * weight / 4.0)
    return float(np.abs(torques).max())


@pytest.fixture
def centred(make_pool):
    """Return Go2 whose weight lies over the middle of its feet, on ice."""
    robot = make_pool().robot
    data = stand_level(robot)
    feet = data.geom_xpos[robot.foot_geom_ids].mean(axis=0)
    trunk = robot.model.body_mass[robot.trunk_body_id]
    share = robot.model.body_subtreemass[robot.trunk_body_id] / trunk
    offset = (feet - data.subtree_com[robot.trunk_body_id]) * share
    return make_pool(offset=(offset[0], offset[1], 0.0))


def test_least_torque_is_the_one_worked_out_by_hand(centred, default_stance_only):
    expected = torque_by_hand(centred.robot)
    assert 3.0 < expected < 10.0
    assert least_effort(centred) == pytest.approx(expected, rel=0.01)


def test_least_torque_grows_with_the_mass(centred, default_stance_only):
    heavy = replace(centred, fields={**centred.fields})
    heavy.fields["body_mass"] = 3.0 * centred.fields["body_mass"]
    assert least_effort(heavy) == pytest.approx(3.0 * least_effort(centred), rel=0.01)


def test_weight_of_a_pull_from_above_is_carried_away(centred, default_stance_only):
    """A force upwards of half the weight on the trunk takes load off the legs."""
    weight = 9.81 * centred.fields["body_mass"].sum()
    lifted = replace(centred, wrench=np.array([[0, 0, 0.5 * weight, 0, 0, 0]]))
    assert least_effort(lifted) < 0.7 * least_effort(centred)


def test_other_stances_help(centred, monkeypatch):
    weaker = with_effort(centred, 0.9 * torque_by_hand(centred.robot))
    assert not impossible(weaker)[0]
    for name, only in (("BENDS", 1.0), ("SWINGS", 0.0), ("LEANS", 0.0)):
        monkeypatch.setattr(statics, name, (only,))
    assert impossible(weaker)[0]


def test_friction_helps(centred, default_stance_only):
    rough = replace(centred, fields={**centred.fields})
    rough.fields["geom_friction"] = np.ones_like(centred.fields["geom_friction"])
    assert least_effort(rough) < least_effort(centred)


def test_weight_outside_the_feet_cannot_be_held(make_pool):
    assert not impossible(make_pool())[0]
    assert impossible(make_pool(offset=(1.5, 0.0, 0.0), effort=1000.0))[0]


def test_sideways_force_needs_friction(make_pool):
    for friction, expected in ((0.0, True), (1.0, False)):
        pool = make_pool(friction=friction)
        pushed = replace(pool, wrench=np.array([[20.0, 0, 0, 0, 0, 0]]))
        assert impossible(pushed)[0] == expected


def test_go2_at_the_baseline_is_possible_and_five_of_it_on_weak_motors_not(make_suite):
    suite = make_suite("""
        episodes = 4
        [columns]
        plain = {}
        heavy.parameters = { mass.scale = 5.0, actuation.effort_limit = 10.0 }
    """)
    for name, share in (("plain", 0.0), ("heavy", 1.0)):
        column = suite.frozen[name]
        assert impossible_share(column, suite.success, 4, ArrayCache(None)) == share


HARD = """
episodes = 48
[task]
episode_s = 1.5
command = { max_speed = 0.0, max_yaw_rate = 0.0 }
[columns.a]
groups = ["all"]
parameters.mass.scale = [1.0, 5.0]
parameters.actuation.effort_limit = [8.0, 30.0]
"""


def test_more_torque_never_makes_it_impossible(make_suite):
    pool = make_suite(HARD).frozen["a"].scenarios(16).pool
    found = [impossible(replace(pool, effort=k * pool.effort)) for k in (0.5, 1.0, 2.0)]
    assert all(
        (more <= less).all() for less, more in zip(found, found[1:], strict=False)
    )
    assert found[0].sum() > found[-1].sum()


def test_what_stand_won_is_never_called_impossible(make_suite):
    suite = make_suite(HARD)
    stand = Evaluator(ArrayCache(None)).evaluate(load_policy("stand"), suite)
    won = success_table(stand)[0]
    found = impossible(suite.frozen["a"].scenarios(48).pool)
    assert won.sum() > 3 and found.sum() > 3
    assert not (won & found).any()


def test_share_is_kept_and_read_back(make_suite, monkeypatch, own_cache):
    suite, cache = make_suite(HARD), ArrayCache(own_cache)
    of = suite.frozen["a"], suite.success
    share = impossible_share(*of, 8, cache)
    monkeypatch.setattr(statics, "impossible", lambda pool: pytest.fail("ran again"))
    assert impossible_share(*of, 8, cache) == share
    few = impossible_share(*of, 4, cache)
    assert few * 4 == int(few * 4)
