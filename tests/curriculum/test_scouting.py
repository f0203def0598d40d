"""Scouting, worked by hand: the ladder, what its rungs cost, how far to leap."""

import numpy as np
import pytest

from horizon_rl.curriculum import LeapCfg
from horizon_rl.curriculum.scouting import (
    Recovery,
    between,
    choose_leap,
    is_hopeful,
    ladder,
    losses,
    reach,
    reach_by_error,
    smooth,
    survived_here,
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
        "beyond 0": HERE,
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
        "beyond 0": {"mass": 0.6, "com": 0.4},
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
    levels, expected = choose_leap(HERE, found, 0.6, 0.0, CFG)
    assert levels == pytest.approx({"mass": 0.8, "com": 0.75})  # 0.75 of their way.
    assert expected == pytest.approx(0.6)


@pytest.mark.parametrize("luck", [-0.1, 0.0, 0.04])
def test_scouts_that_are_all_easy_or_all_hard_lead_nowhere_else(luck):
    beyond = tuple(0.96 + luck - loss for loss in (0.06, 0.16, 0.56))
    found = survival(0.95, beyond=beyond) | {"beyond 0": 0.96 + luck}
    levels, expected = choose_leap({"mass": 0.0}, found, 0.84, 0.0, CFG)
    assert levels == pytest.approx({"mass": 0.375})  # 0.11: half way on from 0.06.
    assert expected == pytest.approx(0.84)


@pytest.mark.parametrize(
    ("recovery", "expected", "share"),
    [
        (0.0, 0.85, 0.375),  # 0.1 is lost: half way between 0.9 and 0.8.
        (0.5, 0.75, 0.5625),  # 0.2: 0.15 up to rung 0.5, then 0.05 of 0.4.
        (0.75, 0.55, 0.8125),  # 0.4: then 0.25 of 0.4.
        (0.9, 0.4, 1.0),  # 1 may be lost, but no rung costs more than 0.55.
    ],
)
def test_leap_goes_where_a_phase_is_expected_to_reach_the_goal(
    recovery, expected, share
):
    found = survival(0.95, beyond=(0.9, 0.8, 0.4))
    levels, scouted = choose_leap({"mass": 0.0}, found, 0.85, recovery, CFG)
    assert levels == pytest.approx({"mass": share})
    assert scouted == pytest.approx(expected)
    assert expected + recovery * (0.95 - expected) >= 0.85 - 1e-9


def test_policy_below_the_goal_leaps_only_where_nothing_is_lost():
    found = survival(0.5, beyond=(0.5, 0.4, 0.3))
    assert choose_leap(HERE, found, 0.6, 0.7, CFG) == ({"mass": 0.4, "com": 0.25}, 0.5)
    steep = survival(0.5, beyond=(0.49, 0.4, 0.3))
    assert choose_leap(HERE, steep, 0.6, 0.7, CFG) == (HERE, 0.5)


def test_policy_survives_here_what_it_did_in_training_or_more():
    assert survived_here({"candidate": 0.9, "training": 0.8}) == 0.9
    assert survived_here({"candidate": 0.8, "training": 0.9}) == 0.9
    assert survived_here({"candidate": 0.8}) == 0.8
    assert survived_here({"training": 0.9}) is None


def test_recovery_is_that_of_all_leaps_the_older_ones_for_half():
    recovery = Recovery.expect(0.5)
    assert recovery.share == 0.5
    recovery = recovery.add(0.3, 0.1)  # 0.05 + 0.1 of 0.1 + 0.3.
    assert recovery.share == pytest.approx(0.375)
    assert recovery.add(0.2, 0.2).share == pytest.approx(0.275 / 0.4)
    assert recovery.after_failure().share == pytest.approx(0.375 / 2)


@pytest.mark.parametrize(
    ("lost", "won_back", "share"),
    [
        (0.1, -0.3, 0.25),  # It got worse: nothing is won back.
        (0.1, 0.2, 0.75),  # No more than all is.
        (0.0, 0.1, 0.5),  # A leap that costs nothing shows nothing,
        (-0.1, 0.1, 0.5),  # nor does one beyond which scouts survive more.
    ],
)
def test_chance_is_no_recovery(lost, won_back, share):
    assert Recovery.expect(0.5).add(lost, won_back).share == pytest.approx(share)


def test_recovery_is_defined_after_however_many_leaps():
    recovery = Recovery.expect(0.5)
    for _ in range(2000):  # Halves of halves would be zero by now.
        recovery = recovery.add(0.0, 0.0)
    assert recovery.share == 0.5


@pytest.mark.parametrize("missing", ["candidate", "beyond 0.25", "beyond 1"])
def test_no_leap_without_all_scouts(missing):
    found = survival(0.9, beyond=(0.9, 0.9, 0.9))
    del found[missing]
    assert choose_leap(HERE, found, 0.6, 0.7, CFG) == (HERE, None)


def test_only_outward_scouts_are_averaged_with_earlier_ones():
    before = {"candidate": 0.5, "beyond 0": 0.6, "beyond 1": 0.2}
    now = {"candidate": 0.9, "training": 0.8, "beyond 0": 1.0, "beyond 0.5": 0.7}
    assert smooth(before, now, 0.25) == {**now, "beyond 0": pytest.approx(0.9)}
    assert smooth({}, now, 0.25) == now


def test_error_is_expected_to_grow_as_that_of_the_scouts_does():
    errors = {"beyond 0": 0.2, "beyond 0.25": 0.3, "beyond 0.5": 0.25, "beyond 1": 0.7}
    found = {**errors, "training": 0.4}
    # 0.05 of 0.1 up to rung 0.25. An error that falls is chance: the rungs before count.
    assert reach_by_error(found, 0.45, CFG) == pytest.approx(0.125)
    assert reach_by_error(found, 0.5, CFG) == 0.5
    assert reach_by_error(found, 0.7, CFG) == pytest.approx(0.5 + 0.5 * 0.2 / 0.4)
    assert reach_by_error(found, 2.0, CFG) == 1.0
    assert reach_by_error(found, 0.4, CFG) == reach_by_error(found, 0.1, CFG) == 0.0
    # What was not scouted sets no bound.
    assert reach_by_error(errors, 0.1, CFG) == 1.0
    assert reach_by_error({"training": 0.4, "beyond 0": 0.2}, 0.1, CFG) == 1.0


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
        ({"recovery": 1.0}, "recovery is 1"),
        ({"patience": 0}, "patience is 0"),
        ({"min_gain": -0.1}, "min_gain is -0.1"),
        ({"rungs": ()}, "rungs has 0 entries; accepted: 1..100"),
        ({"rungs": (0.5, 0.25)}, "accepted: rising, above 0"),
        ({"rungs": (0.0, 1.0)}, "accepted: rising, above 0"),
    ],
)
def test_impossible_settings_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        LeapCfg(**changes)
