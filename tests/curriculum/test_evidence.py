"""Which episodes gate L may judge, worked by hand."""

import math
import re
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from horizon_rl.curriculum import (
    Episodes,
    Evidence,
    Outcomes,
    measure,
    select_window,
)
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import dumps, encode


def episodes(*rows):
    start, length, error = np.array(rows, dtype=float).T
    return Episodes(start, length, error)


def test_window_holds_only_episodes_that_could_have_lasted():
    # A phase of 250 steps, episodes of at most 100: starts 0..150 are fair.
    window = select_window(
        episodes(
            (-40, 100, 0.1),  # Under way when the phase began.
            (0, 100, 0.2),
            (100, 100, 0.3),
            (150, 60, 0.4),
            (151, 3, 9.0),  # Fell; had it lived, it would not have finished.
            (200, 20, 9.0),
        ),
        phase_steps=250,
        max_length=100,
    )
    assert window.start.tolist() == [0, 100, 150]
    length, error = measure(window, max_length=100)
    assert length == pytest.approx((1.0 + 1.0 + 0.6) / 3)
    assert error == pytest.approx(0.3)


def test_window_would_hold_only_falls_without_the_second_rule():
    # 4 robots start together and 3 live; the phase ends half-way to their timeout.
    fell = [(i * 10, 10, 1.0) for i in range(15)]
    window = select_window(episodes(*fell), phase_steps=150, max_length=100)
    assert window.start.max() <= 50


def test_window_keeps_the_last_by_start_time():
    rows = [(i, 50, i / 10) for i in (3, 1, 2, 0)]
    window = select_window(episodes(*rows), phase_steps=100, max_length=50, window=2)
    assert window.start.tolist() == [2, 3]


def test_episodes_that_began_together_are_taken_together():
    # Recorded as they ended: a fall first, though it began with the others.
    rows = [(0, 20, 1.0), (0, 50, 1.0), (10, 5, 9.0), (10, 50, 1.0), (10, 50, 1.0)]
    window = select_window(episodes(*rows), phase_steps=100, max_length=50, window=2)
    assert window.start.tolist() == [10, 10, 10]
    assert window.length.tolist() == [5, 50, 50]


def test_empty_window_is_no_measurement():
    window = select_window(episodes((90, 5, 1.0)), phase_steps=100, max_length=50)
    assert measure(window, max_length=50) == (None, None)


def test_evidence_turns_numpy_scalars_into_plain_ones_and_nan_into_none():
    evidence = Evidence(
        length=np.float32(0.5),  # pyright: ignore[reportArgumentType]
        tracking_error=float("nan"),
        env_steps=np.int64(7),  # pyright: ignore[reportArgumentType]
        checkpoint_error=1,
    )
    assert evidence.length == 0.5 and type(evidence.length) is float
    assert evidence.tracking_error is None
    assert type(evidence.env_steps) is int
    assert type(evidence.checkpoint_error) is float


@pytest.mark.parametrize("length", [-0.01, 1.01, 300.0])
def test_a_length_that_is_no_share_is_refused(length):
    with pytest.raises(InputError, match=r"length is .* a share of the longest"):
        Evidence(length=length, tracking_error=0.2)
    with pytest.raises(InputError, match=r"mass 1_length is .* a share of the longest"):
        Evidence(length=0.5, tracking_error=0.2, probed={"mass 1_length": length})


def test_a_mean_of_shares_may_miss_its_end_by_the_last_bit():
    above, below = math.nextafter(1.0, 2.0), -1e-17
    assert Evidence(length=above, tracking_error=None).length == above
    assert Evidence(length=below, tracking_error=None).length == below


OUTCOMES = Outcomes(
    row=(0, 1, 2),
    length=(1.0, 0.5, 0.0),
    tracking_error=(0.1, 0.2, 0.3),
    returns=(-1.0, 0.0, 2.0),
    values=((0.1, 7.0), (0.2, 8.0), (0.3, 9.0)),
    world=(4, 5, 4),
)


def test_outcomes_are_plain_numbers_whatever_they_came_as():
    arrays: dict[str, Any] = {
        name: np.array(column) for name, column in vars(OUTCOMES).items()
    }
    again = Outcomes(**arrays)
    assert again == OUTCOMES
    assert {type(x) for x in (*again.row, *again.world)} == {int}
    assert {type(x) for x in (*again.length, *again.values[0])} == {float}


def test_columns_without_episodes_are_plain_too():
    none: Any = np.zeros((0, 3))
    found = Outcomes(row=(), length=(), tracking_error=(), values=none)
    assert found.values == () and "values" in dumps(encode(found))


def test_numbers_of_any_size_are_compared_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert replace(OUTCOMES, returns=(1e308, 0.0, -1e308)).returns[0] == 1e308


@pytest.mark.parametrize("name", ["length", "tracking_error", "returns"])
def test_an_episode_in_which_physics_broke_is_a_failure(name):
    column = [*getattr(OUTCOMES, name)]
    column[1] = math.nan
    found = replace(OUTCOMES, **{name: tuple(column)})
    assert found.length == (1.0, 0.0, 0.0)
    assert found.tracking_error == (0.1, 1e6, 0.3)
    assert found.returns == (-1.0, 0.0, 2.0)
    assert (found.row, found.values) == (OUTCOMES.row, OUTCOMES.values)


def test_an_episode_that_nobody_can_place_is_left_out():
    values = ((0.1, 7.0), (0.2, math.inf), (0.3, 9.0))
    found = replace(OUTCOMES, values=values)
    assert (found.row, found.world, len(found.values)) == ((0, 2), (4, 4), 2)


@pytest.mark.parametrize("name", ["tracking_error", "length_se", "checkpoint_error"])
def test_an_error_below_zero_is_refused(name):
    given: dict[str, Any] = {"length": 1.0, "tracking_error": 0.1, name: -0.1}
    with pytest.raises(InputError, match=f"{name} is -0.1; accepted: numbers from 0"):
        Evidence(**given)
    with pytest.raises(InputError, match=r"mass 1_error:large is -1; accepted"):
        Evidence(length=1.0, tracking_error=0.1, probed={"mass 1_error:large": -1.0})


@pytest.mark.parametrize(
    ("name", "column", "problem"),
    [
        ("length", (1.0, 300.0, 0.0), "is 300; accepted: 0..1, a share"),
        ("tracking_error", (0.1, -0.2, 0.3), "is -0.2; accepted: numbers from 0 on"),
        ("row", (0, 1.5, 2), "is 1.5; accepted: whole numbers, or -1"),
        ("world", (0, -1, 2), "is -1; accepted: whole numbers from 0 on"),
        ("length", (1.0, 0.5), "does not fit the 3 entries of outcomes.row"),
        ("returns", ("a", "b", "c"), "accepted: a number for every episode"),
        ("values", ((0.1,), (0.2, 1.0), ()), "accepted: as many numbers for every"),
        ("values", (0.1, 0.2, 0.3), "accepted: as many numbers for every"),
        ("returns", None, "accepted: a number for every episode"),
        ("row", 5, "accepted: a number for every episode"),
    ],
)
def test_outcomes_that_cannot_be_are_refused_by_name(name, column, problem):
    with pytest.raises(
        InputError, match=f"^outcomes.{name} .*{re.escape(problem)}"
    ) as e:
        replace(OUTCOMES, **{name: column})
    assert "\n" not in str(e.value)
