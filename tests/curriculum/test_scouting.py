"""Scouting, worked by hand: the ladder, what its rungs cost, how far to leap."""

import numpy as np
import pytest

from horizon_rl.curriculum import LeapCfg
from horizon_rl.curriculum.scouting import (
    between,
    choose_leap,
    is_hopeful,
    ladder,
    losses,
    reach,
)
from horizon_rl.support.errors import InputError

CFG = LeapCfg(rungs=(0.25, 0.5, 1.0))
HERE = {"mass": 0.2, "com": 0.0}


def survival(here: float, **rungs: tuple[float, ...]) -> dict[str, float]:
    """Return what scouts survived: on the rungs of CFG, by the ladder's name."""
    found = {
        f"{name} {rung:g}": value
        for name, values in rungs.items()
        for rung, value in zip(CFG.rungs, values, strict=True)
    }
    return {"candidate": here, **found}


def test_between_goes_a_share_of_the_way_and_rounds():
    assert between(HERE, {"mass": 1.0, "com": 1.0}, 0.25) == {"mass": 0.4, "com": 0.25}
    assert between({"mass": 0.0}, {"mass": 1.0}, 1 / 3) == {"mass": 0.3333}


def test_ladder_at_mastered_levels_goes_outward_only():
    assert ladder(HERE, HERE, CFG) == {
        "beyond 0.25": {"mass": 0.4, "com": 0.25},
        "beyond 0.5": {"mass": 0.6, "com": 0.5},
        "beyond 1": {"mass": 1.0, "com": 1.0},
    }


def test_ladder_of_a_leap_also_goes_back_toward_what_is_mastered():
    sets = ladder(HERE, {"mass": 0.6, "com": 0.4}, LeapCfg(rungs=(0.5,)))
    assert sets == {
        "within 0.75": {"mass": 0.5, "com": 0.3},
        "within 0.5": {"mass": 0.4, "com": 0.2},
        "within 0.25": {"mass": 0.3, "com": 0.1},
        "beyond 0.5": {"mass": 0.8, "com": 0.7},
    }


def test_ladder_at_the_limit_has_nothing_outward():
    limit = {"mass": 1.0, "com": 1.0}
    assert ladder(limit, limit, CFG) == {}
    assert list(ladder(HERE, limit, CFG)) == [
        "within 0.75",
        "within 0.5",
        "within 0.25",
    ]


def test_losses_never_fall_with_the_rung():
    # Luck on a far rung does not make it easier than a nearer one.
    found = losses(0.9, [0.95, 0.7, 0.8, 0.4])
    assert found == pytest.approx([0.0, 0.0, 0.2, 0.2, 0.5])


@pytest.mark.parametrize(
    ("allowed", "share"),
    [
        (0.0, 0.25),  # Nothing is lost up to the first rung.
        (0.1, 0.375),  # Half of the loss between 0.25 and 0.5.
        (0.2, 0.5),
        (0.35, 0.75),  # Half of that between 0.5 and 1.
        (0.5, 1.0),
        (0.9, 1.0),
    ],
)
def test_reach_is_where_the_loss_is_used_up(allowed, share):
    loss = np.array([0.0, 0.0, 0.2, 0.5])
    assert reach(loss, (0.25, 0.5, 1.0), allowed) == pytest.approx(share)


def test_reach_of_a_loss_from_the_start():
    assert reach(np.array([0.0, 0.4]), (0.5,), 0.1) == pytest.approx(0.125)
    assert reach(np.array([0.0, 0.4]), (0.5,), 0.0) == 0.0


def test_leap_together_goes_the_same_share_in_all_groups():
    # 0.95 - 0.6 = 0.35 may be lost: 0.15 up to rung 0.5, then 0.2 of 0.4: half way on.
    found = survival(0.95, beyond=(0.9, 0.8, 0.4))
    levels = choose_leap(HERE, found, 0.6, CFG)
    assert levels == pytest.approx({"mass": 0.8, "com": 0.75})  # 0.75 of their way.


def test_policy_below_the_goal_leaps_only_where_nothing_is_lost():
    found = survival(0.5, beyond=(0.5, 0.4, 0.3))
    assert choose_leap(HERE, found, 0.6, CFG) == {"mass": 0.4, "com": 0.25}
    steep = survival(0.5, beyond=(0.49, 0.4, 0.3))
    assert choose_leap(HERE, steep, 0.6, CFG) == HERE


@pytest.mark.parametrize("missing", ["candidate", "beyond 0.25", "beyond 1"])
def test_no_leap_without_all_scouts(missing):
    found = survival(0.9, beyond=(0.9, 0.9, 0.9))
    del found[missing]
    assert choose_leap(HERE, found, 0.6, CFG) == HERE


@pytest.mark.parametrize(
    ("trail", "hopeful"),
    [
        ((0.5,), True),  # One phase shows no slope.
        ((0.6, 0.7), True),  # 0.7 + 4 * 0.1 arrives.
        ((0.75, 0.8), True),  # 0.8 + 4 * 0.05 arrives.
        ((0.75, 0.78), False),  # 0.78 + 4 * 0.03 = 0.9 does not.
        ((0.9, 0.91), False),  # Within its error, it is flat.
        ((0.9, 0.8), False),
        ((0.7, 0.9, 1.0), True),  # It passed: something else failed.
        ((0.1, 0.3, 0.5, 0.8, 0.95), True),  # One is left, and arrives.
        ((0.1, 0.3, 0.5, 0.6, 0.8, 0.95), False),  # None is left.
    ],
)
def test_phase_goes_on_while_it_is_projected_to_pass(trail, hopeful):
    assert is_hopeful(trail, error=0.02, patience=6) is hopeful


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"last_leap": 1.5}, "last_leap is 1.5"),
        ({"stake": 1.5}, "stake is 1.5"),
        ({"patience": 0}, "patience is 0"),
        ({"min_gain": -0.1}, "min_gain is -0.1"),
        ({"rungs": ()}, "rungs are none; accepted: at least one"),
        ({"rungs": (0.5, 0.25)}, "accepted: rising, in 0..1"),
        ({"rungs": (0.0, 1.0)}, "accepted: rising, in 0..1"),
    ],
)
def test_impossible_settings_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        LeapCfg(**changes)
