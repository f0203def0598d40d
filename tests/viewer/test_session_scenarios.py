"""Frozen scenarios in a session: what an evaluation counts is what one sees."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("mujoco")

from horizon_rl.domains import shipped_catalogue
from horizon_rl.evaluation.array_cache import ArrayCache
from horizon_rl.evaluation.evaluate import Evaluator
from horizon_rl.evaluation.suite_file import load_suite
from horizon_rl.policies.load import load_policy
from horizon_rl.support.errors import InputError
from horizon_rl.viewer.body import BodyVariant
from horizon_rl.viewer.session import Session
from horizon_rl.viewer.setup import (
    load_scenario,
)


@pytest.mark.slow
def test_session_on_stairs_does_to_the_bit_what_an_evaluation_counts():
    suite = load_suite("ground").choose(["blocks-10"])
    policy = load_policy("base-mlp")
    counted = (
        Evaluator(ArrayCache(None)).evaluate(policy, suite, 1).columns["blocks-10"]
    )
    session = Session(policy, load_scenario("ground:blocks-10#0"), exact=True)
    while not session.fallen and session.steps < suite.task.max_steps:
        session.step()
    assert session.steps == counted.length[0]
    error = session.readout().error
    assert error == pytest.approx(counted.tracking_error[0], rel=1e-5)


@pytest.mark.parametrize(
    ("name", "column", "count"), [("paper", "mass", 1), ("extended", "all", 2)]
)
def test_session_does_to_the_bit_what_an_evaluation_counts(name, column, count):
    catalogue = shipped_catalogue(name)
    suite = load_suite("ood", 0.5, catalogue=catalogue)
    columns = tuple(c for c in suite.columns if c.name == column)
    suite = replace(suite, columns=columns)
    policy = load_policy("base-mlp")
    evaluator = Evaluator(ArrayCache(None))
    counted = evaluator.evaluate(policy, suite, count).columns[column]
    for number in range(count):
        setup = load_scenario(f"ood:{column}@0.5#{number}", catalogue=catalogue)
        session = Session(policy, setup, exact=True)
        while not session.fallen and session.steps < setup.task.max_steps:
            session.step()
        assert session.steps == counted.length[number]
        error = session.readout().error
        assert error == pytest.approx(counted.tracking_error[number], rel=1e-5)


def test_driving_by_hand_ends_the_scenarios_own_commands_until_it_is_replayed():
    session = Session(load_policy("stand"), load_scenario("ood:mass@0.5#1"))
    planned = session.command.copy()
    assert planned.any()
    session.drive(np.array((0.1, 0.0, 0.0)))
    session.reset()
    session.step()
    assert session.command[0] == 0.1
    session.replay()
    session.step()
    np.testing.assert_array_equal(session.command, planned)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ood", "not of the form"),
        ("ood:mas#1", "did you mean 'mass'"),
        ("odd:mass", "did you mean 'ood'"),
        ("ood:mass@high", "not of the form"),
        ("ood:mass@3", "0..1"),
        ("ood:mass#1024", "0..1023"),
        ("ood:mass#x", "not of the form"),
        ("robots:spot@0.5", "no severity"),
    ],
)
def test_wrong_scenario_is_refused_with_what_is_accepted(name, message):
    with pytest.raises(InputError, match=message):
        load_scenario(name)


def test_scenario_of_an_intervention_has_its_body():
    setup = load_scenario("interventions:stilts#2")
    assert setup.body == BodyVariant(robot="go2", interventions=("stilts",))
    assert setup.scenario == "interventions:stilts#2"
