"""Levels that every instance draws for itself."""

import numpy as np
import pytest
from scipy import stats

from horizon_rl.domains import paper_catalogue
from horizon_rl.domains.beta import BetaLevels, quantile
from horizon_rl.domains.distribution import AtLevels
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import decode, encode

CATALOGUE = paper_catalogue()
BY_GROUP = BetaLevels({"mass": (0.8, 3.0), "com": (2.0, 2.0)})


def draw(distribution, n=2000, seed=0):
    return distribution.sample(CATALOGUE, n, np.random.default_rng(seed))


def test_levels_are_drawn_from_the_beta_distributions():
    drawn = draw(BY_GROUP)
    for group, shape in BY_GROUP.shapes.items():
        levels = drawn[group][:, 0]
        assert stats.kstest(levels, stats.beta(*shape).cdf).pvalue > 0.01
    assert abs(np.corrcoef(drawn["mass"][:, 0], drawn["com"][:, 0])[0, 1]) < 0.06


def test_values_lie_in_the_ranges_at_each_instance_s_own_level():
    drawn = draw(BY_GROUP)
    for name, parameter in CATALOGUE.parameters.items():
        group = name.partition(".")[0]
        levels = drawn[group][:, 0] if group in drawn else np.zeros(2000)
        values = drawn[name].reshape(2000, -1)
        for level, row in zip(levels[:200], values[:200], strict=True):
            within = parameter.range_at(float(level))
            assert np.all(row >= within.low - 1e-9), name
            assert np.all(row <= within.high + 1e-9), name


def test_values_are_uniform_within_those_ranges():
    drawn = draw(BY_GROUP)
    name, parameter = next(
        (n, p) for n, p in CATALOGUE.parameters.items() if n.startswith("com.")
    )
    base, limit, t = parameter.baseline, parameter.limit, drawn["com"]
    low = base.low + t * (limit.low - base.low)
    high = base.high + t * (limit.high - base.high)
    place = (drawn[name].reshape(2000, -1) - low) / (high - low)
    assert stats.kstest(place[:, 0], "uniform").pvalue > 0.01


def test_parameters_may_have_levels_of_their_own():
    names = [n for n in CATALOGUE.parameters if n.startswith(("mass.", "com."))]
    drawn = draw(BetaLevels(dict.fromkeys(names, (1.0, 4.0))))
    of_mass = [n for n in names if n.startswith("mass.")]
    assert drawn["mass"].shape == (2000, len(of_mass))
    if len(of_mass) > 1:
        assert np.all(drawn["mass"][:, 0] != drawn["mass"][:, 1])


def test_fewer_instances_are_the_first_of_more():
    few, many = draw(BY_GROUP, 10), draw(BY_GROUP, 50)
    for name, values in few.items():
        assert np.array_equal(values, many[name][:10])


def test_nearly_all_mass_at_zero_is_the_baseline():
    base, near = AtLevels({}), BetaLevels({"mass": (1.0, 1e9)})
    mass = draw(near)["mass.scale"]
    range_ = CATALOGUE.parameters["mass.scale"].baseline
    assert range_.low - 1e-6 <= mass.min() <= mass.max() <= range_.high + 1e-6
    assert set(draw(base)) == set(draw(near)) - {"mass"}


def test_levels_alone_have_the_same_marks():
    levels, marks = BY_GROUP.sample_levels(500, np.random.default_rng(1))
    assert list(levels) == list(marks) == ["mass", "com"]
    assert np.array_equal(levels["com"], marks["com"][:, 0])
    assert np.median(levels["com"]) == pytest.approx(0.5, abs=0.05)


def test_it_is_a_value_and_refuses_unknown_names():
    assert decode(BetaLevels, encode(BY_GROUP)) == BY_GROUP
    assert quantile((1.0, 100.0), 0.5) == pytest.approx(1.0 - 0.5**0.01)
    with pytest.raises(InputError, match="unknown group or parameter 'mas'"):
        draw(BetaLevels({"mas": (1.0, 1.0)}))
    for shape in ((0.0, 1.0), (1.0, -1.0), (float("nan"), 1.0), (1.0, float("inf"))):
        with pytest.raises(InputError, match="shapes of mass are .*accepted"):
            BetaLevels({"mass": shape})
