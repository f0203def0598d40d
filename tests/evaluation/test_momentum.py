"""Which scenarios momentum makes impossible, against slides worked out by hand."""

from dataclasses import replace
from math import cos, radians, sqrt

import numpy as np
import pytest
import torch

from horizon_rl.evaluation import statics
from horizon_rl.evaluation.array_cache import ArrayCache
from horizon_rl.evaluation.momentum import impossible
from horizon_rl.evaluation.results import impossible_share
from horizon_rl.physics import CpuBackend
from horizon_rl.robots import load_robot
from horizon_rl.task import SuccessCfg, TaskCfg, VelocityEnv

SLIPPERY = """
episodes = 2
[task]
command = {{ max_speed = 0.0, max_yaw_rate = 0.0 }}
push = {{ min_interval_s = 10.0, max_interval_s = 10.0 }}
[columns.a.parameters]
contact = {{ static_friction = {friction}, dynamic_friction = {friction} }}
disturbance.push_velocity = [{speed}, 0.0, 0.0, 0.0]
disturbance.external_force = [0.0, 0.0, {lift}]
mass.scale = 1.0
"""


@pytest.fixture
def make_scenarios(make_suite):
    def make(speed: float, friction=0.1, lift=0.0, step=100, command=0.0):
        """Return two scenarios of one push, at `step`, and one command."""
        text = SLIPPERY.format(speed=speed, friction=friction, lift=lift)
        found = make_suite(text).frozen["a"].scenarios(2)
        commands = np.zeros_like(found.commands)
        commands[:, :, 1] = command
        pushes = np.tile([step, 2000], (2, 1))
        return replace(found, commands=commands, push_steps=pushes)

    return make


def is_impossible(scenarios, **success) -> bool:
    found = impossible(scenarios, TaskCfg(), SuccessCfg(**success))
    assert found[0] == found[1]
    return bool(found[0])


def least_push(friction: float) -> float:
    """Return the push by which a robot that shall stand still slides for 8 m too far.

    From speed v it slides v^2 / 2 mu g, of which cos 30 deg is measured, less the
    trunk's way against the centre of mass (two legs of 0.426 m) and the landing's.
    """
    slide = 0.4 * 20.0 / cos(radians(30.0)) + 2.0 * 0.426 + 0.5 * friction
    speed = sqrt(2.0 * friction * 9.81 * slide)
    return speed + 0.4 + friction * sqrt(2.0 * 9.81 * 0.5)


@pytest.mark.parametrize("friction", [0.05, 0.1, 0.2])
def test_it_takes_the_push_that_was_worked_out(make_scenarios, friction):
    push = least_push(friction)
    assert is_impossible(make_scenarios(1.01 * push, friction))
    assert not is_impossible(make_scenarios(0.99 * push, friction))
    # Nothing but the push: at the end of the episode there is no time left to slide.
    assert not is_impossible(make_scenarios(1.01 * push, friction, step=900))
    assert not is_impossible(make_scenarios(1.01 * push, friction, step=2000))


def test_whoever_is_to_walk_may_slide_further(make_scenarios):
    push = 1.01 * least_push(0.1)
    assert not is_impossible(make_scenarios(push, command=0.3))
    assert is_impossible(make_scenarios(push + 2.0, command=0.3))
    assert not is_impossible(make_scenarios(push), max_error=0.5)


def test_whoever_may_fall_at_once_fails_nowhere(make_scenarios):
    assert not is_impossible(make_scenarios(9.0, friction=0.05), min_length=0.0)


def test_less_weight_brakes_less(make_scenarios):
    push = 0.99 * least_push(0.1)
    # 30 N of its 149 N are carried from above.
    assert is_impossible(make_scenarios(push, lift=30.0))
    assert not is_impossible(make_scenarios(push, lift=-30.0))


def test_baseline_friction_stops_any_push_in_time(make_scenarios):
    assert not is_impossible(make_scenarios(7.0, friction=0.4))


def test_two_pushes_add_up_less_what_is_left_of_the_first(make_scenarios):
    one = make_scenarios(0.8 * least_push(0.1))
    twice = np.repeat(one.pool.push_velocity[:, :1], 2, axis=1)
    both = replace(one, pool=replace(one.pool, push_velocity=twice))
    steps = np.tile([0, 500], (2, 1))
    assert not is_impossible(replace(one, push_steps=steps))
    assert is_impossible(replace(both, push_steps=steps))
    # So soon after the first, the second may stop what is left of it.
    soon = np.tile([0, 10], (2, 1))
    assert not is_impossible(replace(both, push_steps=soon))


def test_robot_on_its_feet_slides_as_far_in_the_engine(make_scenarios):
    scenarios = make_scenarios(2.0, friction=0.05, step=25)
    env = VelocityEnv(CpuBackend(load_robot("go2"), 2), TaskCfg())
    env.begin(scenarios, 0, torch.arange(2))
    places = []
    for _ in range(126):
        places.append(env.backend.state.root_position[:, 0].clone())
        env.step(torch.zeros((2, 12)))
    slid = float((places[125] - places[25]).mean())
    # 2 m/s for 2 s, less half of 0.05 g times 4 s^2.
    assert slid == pytest.approx(4.0 - 0.5 * 0.05 * 9.81 * 4.0, abs=0.1)


def test_share_of_a_column_counts_statics_and_momentum(make_suite):
    text = SLIPPERY.format(speed=6.0, friction=0.05, lift=0.0)
    suite = make_suite(text + "[columns.b.parameters]\nactuation.effort_limit = 1.0")
    shares = [
        impossible_share(column, suite.success, 1, ArrayCache(None))
        for column in suite.frozen.values()
    ]
    assert shares == [1.0, 1.0]
    assert not statics.impossible(suite.frozen["a"].scenarios(1).pool).any()
    still = suite.frozen["b"].scenarios(1)
    assert not impossible(still, suite.task, suite.success).any()
