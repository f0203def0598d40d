"""Which episodes gate L may judge, worked by hand."""

import numpy as np
import pytest

from horizon_rl.curriculum import Episodes, Evidence, measure, select_window


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
