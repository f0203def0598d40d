"""Early looks must be rare to pass by luck, and quick to see a collapse."""

import numpy as np
import pytest

from horizon_rl.curriculum import EarlyCfg, Episodes, GateCfg
from horizon_rl.curriculum.early_stopping import look_early, spent_error
from horizon_rl.support.errors import InputError

LOOKS = EarlyCfg(looks=(0.25, 0.5, 0.75))


def window(length, error):
    return Episodes(np.zeros(len(length)), length, error)


def look_at(length, error, index):
    return look_early(
        window(np.asarray(length), np.asarray(error)),
        index,
        max_length=1000,
        gates=GateCfg(),
        cfg=LOOKS,
    )


def test_error_is_spent_late_and_whole():
    shares = [spent_error(t, 0.05) for t in (0.25, 0.5, 0.75, 1.0)]
    assert shares == sorted(shares)
    assert shares[0] < 1e-3
    assert shares[-1] == pytest.approx(0.05)


def test_policy_exactly_on_the_threshold_seldom_passes_early():
    # 500 episodes with mean length 850 of 1000 and an error well below its bound.
    rng = np.random.default_rng(0)
    passed = 0
    for _ in range(1000):
        length = 1000.0 * (rng.random((3, 500)) < 0.85)
        passed += any(
            look_at(np.concatenate(length[: i + 1]), np.full(500 * (i + 1), 0.2), i)
            == "judge"
            for i in range(3)
        )
    assert passed / 1000 <= LOOKS.error, f"{passed} of 1000 passed"


def test_clear_success_is_seen_at_the_first_look():
    rng = np.random.default_rng(0)
    length = 1000.0 * (rng.random(500) < 0.99)
    assert look_at(length, rng.normal(0.2, 0.05, 500), 0) == "judge"


def test_imprecise_policy_does_not_pass_however_long_it_lives():
    rng = np.random.default_rng(0)
    assert look_at(np.full(500, 1000.0), rng.normal(0.55, 0.05, 500), 2) == "go on"


def test_collapse_is_aborted_but_not_on_a_handful_of_episodes():
    assert look_at(np.full(500, 100.0), np.full(500, 1.0), 0) == "abort"
    assert look_at(np.full(20, 100.0), np.full(20, 1.0), 0) == "go on"


@pytest.mark.parametrize("looks", [(0.5, 0.25), (0.0,), (1.0,), (0.5, 0.5)])
def test_looks_must_rise_inside_the_phase(looks):
    with pytest.raises(InputError, match="looks are"):
        EarlyCfg(looks=looks)
