"""The gates, by numbers at, above and below their thresholds."""

from dataclasses import replace

import pytest
from evidence import FALLS, FORGETS, GOOD

from horizon_rl.curriculum import Evidence, GateCfg, judge

CFG = GateCfg()


def verdict(**changes):
    return judge(replace(GOOD, **changes), CFG, preservation=True)


def test_good_phase_passes_both_gates():
    good = judge(GOOD, CFG, preservation=True)
    assert (good.feasible, good.preserved, good.passed, good.score) == (
        *(True, True, True),
        1.0,
    )


@pytest.mark.parametrize(
    ("changes", "feasible", "preserved"),
    [
        ({"length": 0.85}, True, True),
        ({"length": 0.8499}, False, True),
        ({"tracking_error": 0.5}, True, True),
        ({"tracking_error": 0.5001}, False, True),
        ({"checkpoint_error": 0.21}, True, True),  # 1.05 * 0.20.
        ({"checkpoint_error": 0.2101}, True, False),
        ({"checkpoint_return": 19.0}, True, True),  # 20 - 0.05 * 20.
        ({"checkpoint_return": 18.99}, True, False),
        # A negative return is allowed to lose 5 % of its size too: -20 - 1.
        ({"reference_return": -20.0, "checkpoint_return": -21.0}, True, True),
        ({"reference_return": -20.0, "checkpoint_return": -21.01}, True, False),
    ],
)
def test_thresholds_are_the_papers(changes, feasible, preserved):
    result = verdict(**changes)
    assert (result.feasible, result.preserved) == (feasible, preserved)
    assert result.passed == (feasible and preserved)


def test_phase_passes_only_if_both_gates_do():
    assert not judge(FALLS, CFG, preservation=True).passed
    assert not judge(FORGETS, CFG, preservation=True).passed
    assert judge(FORGETS, CFG, preservation=False).passed


def test_absolute_slack_forgives_noise_on_a_small_error():
    small = replace(GOOD, reference_error=0.02, checkpoint_error=0.03)
    assert not judge(small, CFG, preservation=True).passed
    assert judge(small, GateCfg(error_slack=0.01), preservation=True).passed


@pytest.mark.parametrize("missing", [None, float("nan"), float("inf")])
def test_what_was_not_measured_passes_no_gate(missing):
    assert not verdict(length=missing).feasible
    assert not verdict(checkpoint_error=missing).preserved
    assert "not measured" in verdict(length=missing).reason


def test_gate_c_is_not_judged_without_a_checkpoint():
    first = Evidence(length=0.9, tracking_error=0.3)
    assert judge(first, CFG, preservation=False).preserved is None
    assert judge(first, CFG, preservation=False).passed


def test_aborted_phase_fails_even_if_its_few_episodes_look_well():
    assert not verdict(aborted=True).passed
    assert "collapsed" in verdict(aborted=True).reason


def test_score_is_the_product_of_the_four_ratios():
    # 0.68/0.85 = 0.8; 0.5/1.0 = 0.5; 0.21/0.42 = 0.5; 9.5/19 = 0.5.
    result = verdict(
        length=0.68, tracking_error=1.0, checkpoint_error=0.42, checkpoint_return=9.5
    )
    assert result.score == pytest.approx(0.8 * 0.5 * 0.5 * 0.5)


@pytest.mark.parametrize(
    ("reference", "value", "ratio"),
    [
        (20.0, -1.0, 0.0),  # Lost all of it.
        (-20.0, -42.0, 0.5),  # -21 / -42.
        (0.0, -1.0, 0.0),
        (0.0, 0.0, 1.0),
    ],
)
def test_score_of_returns_near_and_below_zero_stays_between_0_and_1(
    reference, value, ratio
):
    result = verdict(reference_return=reference, checkpoint_return=value)
    assert result.score == pytest.approx(ratio)


def test_reason_names_what_failed_with_value_and_threshold():
    assert verdict(length=0.6).reason == "episode length 0.6 (at least 0.85)"
    assert "checkpoint return 18 (at least 19)" in verdict(checkpoint_return=18).reason
