"""Levels become ranges and coverage, as the paper's table and text report."""

import numpy as np
import pytest

from horizon_rl.domains import Catalogue, Group, Parameter, Range, paper_catalogue
from horizon_rl.support.errors import InputError

PAPER = paper_catalogue()


def test_the_paper_has_seven_groups():
    names = ("actuation", "mass", "disturbance", "contact", "inertia", "com", "reset")
    assert PAPER.names == names
    assert len(PAPER.parameters) == 15


def test_coverage_at_level_0_is_what_the_paper_reports():
    coverage = PAPER.coverage({})
    assert round(100 * coverage["actuation"], 1) == 4.1
    assert round(100 * coverage["disturbance"], 1) == 4.0


def test_coverage_of_com_at_level_0_follows_the_table_not_the_text():
    # 0.006 / 0.6; the paper's text says 3.0 %. See docs/assumptions.md.
    assert PAPER.coverage({})["com"] == pytest.approx(0.01)


def test_level_0_is_the_baseline_and_level_1_the_limit_to_the_bit():
    at_0, at_1 = PAPER.ranges({}), PAPER.ranges(dict.fromkeys(PAPER.names, 1.0))
    for name, parameter in PAPER.parameters.items():
        assert at_0[name] == parameter.baseline
        assert at_1[name] == parameter.limit


def test_bounds_interpolate_linearly():
    # Mass scale 0.9..1.1 -> 0.4..5.0; half-way: (0.9+0.4)/2 .. (1.1+5.0)/2.
    half = PAPER.ranges({"mass": 0.5})["mass.scale"]
    assert (half.low, half.high) == pytest.approx((0.65, 3.05))


@pytest.mark.parametrize("level", np.linspace(0.0, 1.0, 101))
def test_ranges_widen_with_the_level_and_stay_inside_the_limit(level):
    for parameter in PAPER.parameters.values():
        here = parameter.range_at(level)
        assert here.contains(parameter.baseline)
        assert parameter.limit.contains(here)


def test_group_that_is_not_named_stays_at_level_0():
    assert PAPER.ranges({"mass": 1.0})["com.offset"] == Range(-0.003, 0.003)


def test_group_coverage_is_the_mean_over_its_parameters():
    half = Parameter(name="a", baseline=Range(0, 1), limit=Range(0, 2))
    none = Parameter(name="b", baseline=Range(0, 0), limit=Range(-1, 1))
    assert Group(name="g", parameters=(half, none)).coverage_at(0.0) == 0.25


def test_parameter_whose_limit_has_no_width_is_covered_whole():
    constant = Parameter(name="c", baseline=Range(3, 3), limit=Range(3, 3))
    assert constant.coverage_at(0.0) == 1.0


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ({"mas": 0.5}, "did you mean 'mass'"),
        ({"mass": 1.5}, "outside 0..1"),
        ({"mass": -0.1}, "outside 0..1"),
        ({"mass": float("nan")}, "outside 0..1"),
    ],
)
def test_bad_levels_are_refused(levels, message):
    with pytest.raises(InputError, match=message):
        PAPER.ranges(levels)


def test_groups_are_selected_by_core_full_or_names():
    assert PAPER.select("core") == ("actuation", "mass", "disturbance", "com")
    assert PAPER.select("full") == PAPER.names
    assert PAPER.select("mass, com") == ("mass", "com")
    with pytest.raises(InputError, match="did you mean 'inertia'"):
        PAPER.select("mass,inertai")


def test_catalogue_values_cannot_be_changed():
    with pytest.raises(AttributeError):
        PAPER.groups[0].parameters[0].limit.low = 0.0  # pyright: ignore
    assert isinstance(PAPER, Catalogue)
