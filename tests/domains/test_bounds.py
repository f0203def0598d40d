"""Instances at the bounds of ranges: how many, where, and how they are marked."""

import json

import numpy as np
import pytest

from horizon_rl.domains import AtBounds, LevelDistribution, paper_catalogue
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import decode, dumps, encode

PAPER = paper_catalogue()
N = 8000
GROUPS = {"mass": 0.5, "com": 0.2}
ENDS = {"mass.scale.low": 0.5, "mass.scale.high": 0.1, "com.offset.high": 0.0}


def draw(bounds, share=0.4, n=N):
    return AtBounds(bounds, share).sample(PAPER, n, np.random.default_rng(0))


def test_the_share_lies_at_bounds_evenly_one_of_all():
    drawn = draw(GROUPS)
    mass, com = drawn["bound"] == 1.0, drawn["bound"] == 2.0
    assert set(drawn["bound"]) == {0.0, 1.0, 2.0}
    error = 4 * np.sqrt(0.2 * 0.8 / N)
    assert mass.mean() == pytest.approx(0.2, abs=error)
    assert com.mean() == pytest.approx(0.2, abs=error)


def test_at_a_groups_bound_every_draw_is_at_one_end_and_the_rest_is_uniform():
    drawn, ranges = draw(GROUPS), PAPER.ranges(GROUPS)
    at, offset = drawn["bound"] == 2.0, ranges["com.offset"]
    values = drawn["com.offset"]
    ends = np.isclose(values, offset.low) | np.isclose(values, offset.high)
    assert ends[at].all() and not ends[~at].any()
    high = np.isclose(values[at], offset.high)
    assert high.mean(axis=0) == pytest.approx([0.5] * 3, abs=0.06)
    assert np.abs(np.corrcoef(high.T) - np.eye(3)).max() < 0.1, "each end on its own"
    # The other groups are uniform, at a bound of this one and elsewhere.
    for rows in (at, drawn["bound"] != 1.0):
        scale, mass = drawn["mass.scale"][rows], ranges["mass.scale"]
        quarters = np.histogram(scale, bins=4, range=(mass.low, mass.high))[0]
        assert quarters / rows.sum() == pytest.approx([0.25] * 4, abs=0.05)


def test_ends_of_parameters_move_on_their_own():
    ranges = AtBounds(ENDS, 0.4).ranges(PAPER)
    # Baseline 0.9..1.1, limit 0.4..5.
    assert ranges["mass.scale"].low == pytest.approx(0.65)
    assert ranges["mass.scale"].high == pytest.approx(1.49)
    assert ranges["com.offset"] == PAPER.ranges({})["com.offset"]
    drawn = draw(ENDS)
    for mark, end in ((1.0, 0.65), (2.0, 1.49)):
        at = drawn["bound"] == mark
        assert at.mean() == pytest.approx(0.4 / 3, abs=0.02)
        assert drawn["mass.scale"][at] == pytest.approx(end)
    at = drawn["bound"] == 3.0
    assert drawn["com.offset"][at] == pytest.approx(ranges["com.offset"].high)


def test_ranges_at_group_bounds_are_those_of_the_levels():
    assert AtBounds(GROUPS, 0.4).ranges(PAPER) == PAPER.ranges(GROUPS)


def test_first_instances_do_not_depend_on_how_many_are_drawn():
    few, many = draw(ENDS, n=5), draw(ENDS, n=50)
    for name, values in few.items():
        np.testing.assert_array_equal(values, many[name][:5])


def test_without_a_share_none_lies_at_a_bound():
    assert not draw(GROUPS, share=0.0, n=500)["bound"].any()
    assert draw(GROUPS, share=1.0, n=500)["bound"].all()


@pytest.mark.parametrize("bounds", [GROUPS, ENDS])
def test_levels_are_those_of_the_bound_or_below(bounds):
    distribution = AtBounds(bounds, 0.4)
    assert isinstance(distribution, LevelDistribution)
    levels, marks = distribution.sample_levels(500, np.random.default_rng(0))
    of_mass = [level for name, level in bounds.items() if name.startswith("mass")]
    for mark, level in enumerate(of_mass, start=1):
        assert (levels["mass"][marks["bound"] == mark] == level).all()
    inside = levels["mass"][marks["bound"] == 0.0]
    assert 0.0 <= inside.min() and inside.max() <= np.mean(of_mass)


def test_bounds_of_nothing_and_levels_beyond_the_limit_are_refused():
    for name in ("mas", "mass.scale", "mass.scale.middle"):
        with pytest.raises(InputError, match=f"unknown bound '{name}'.*mass"):
            draw({name: 0.5}, n=1)
    with pytest.raises(InputError, match=r"level mass is 1.1; accepted: 0\.\.1"):
        draw({"mass": 1.1}, n=1)


def test_it_is_a_value():
    plain = json.loads(dumps(encode(AtBounds(GROUPS, 0.4))))
    assert decode(AtBounds, plain) == AtBounds(GROUPS, 0.4)
