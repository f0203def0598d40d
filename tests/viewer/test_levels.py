from math import inf

import numpy as np
import pytest

pytest.importorskip("mujoco")

from horizon_rl.domains import Parameter, Range, paper_catalogue
from horizon_rl.viewer.levels import (
    compare_levels,
    group_level,
    level_needed,
    read_mastered,
)
from horizon_rl.viewer.setup import middle_values

MASS = Parameter(name="scale", baseline=Range(0.9, 1.1), limit=Range(0.4, 5.0))


@pytest.mark.parametrize(
    ("value", "level"),
    [(1.0, 0.0), (1.1, 0.0), (3.05, 0.5), (0.65, 0.5), (5.0, 1.0), (5.1, inf)],
)
def test_level_needed_is_that_of_the_narrowest_range_that_holds_the_value(value, level):
    assert level_needed(MASS, value) == pytest.approx(level)
    if level <= 1.0:
        assert MASS.range_at(level + 1e-9).contains(Range(value, value))


def test_group_needs_the_level_of_its_furthest_value():
    catalogue = paper_catalogue()
    values = middle_values(catalogue) | {"com.offset": np.array((0.0, -0.1515, 0.05))}
    assert group_level(catalogue["com"], values) == pytest.approx(0.5)
    assert group_level(catalogue["mass"], values) == 0.0


def test_values_past_the_curriculum_are_outside():
    catalogue, mastered = paper_catalogue(), read_mastered("core-mlp")
    assert mastered
    values = middle_values(catalogue) | {"mass.scale": np.array([3.5])}
    reaches = {r.group: r for r in compare_levels(catalogue, values, mastered)}
    assert reaches["mass"].is_outside and not reaches["com"].is_outside
    assert reaches["mass"].mastered == mastered.levels["mass"]
    assert reaches["contact"].mastered == 0.0


def test_policy_without_a_record_is_outside_of_nothing():
    catalogue = paper_catalogue()
    assert read_mastered("stand") is None
    values = middle_values(catalogue) | {"mass.scale": np.array([3.5])}
    assert not any(r.is_outside for r in compare_levels(catalogue, values, None))
