from math import inf

import numpy as np
import pytest

pytest.importorskip("mujoco")

from horizon_rl.domains import Parameter, Range, paper_catalogue
from horizon_rl.viewer.levels import (
    compare_levels,
    group_level,
    levels_needed,
    read_mastered,
)
from horizon_rl.viewer.readout import write_readout
from horizon_rl.viewer.session import Readout
from horizon_rl.viewer.setup import middle_values

READOUT = Readout(
    time_s=1.0,
    height_m=0.3,
    command=(0.8, 0.0, 0.0),
    velocity=(0.7, 0.0, 0.0),
    error=0.1,
    tilt_deg=2.0,
    torque_nm=5.0,
    effort_nm=40.0,
    mass_kg=15.0,
    fallen="",
    falls=0,
)

MASS = Parameter(name="scale", baseline=Range(0.9, 1.1), limit=Range(0.4, 5.0))


@pytest.mark.parametrize(
    ("value", "level"),
    [(1.0, 0.0), (1.1, 0.0), (3.05, 0.5), (0.65, 0.5), (5.0, 1.0), (5.1, inf)],
)
def test_level_needed_is_that_of_the_narrowest_range_that_holds_the_value(value, level):
    assert levels_needed(MASS, np.array([value])) == pytest.approx(level)
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
    levels = compare_levels(catalogue, values, mastered)
    assert levels["mass"] == (pytest.approx(2.4 / 3.9), mastered[1]["mass"])
    assert levels["com"] == (0.0, mastered[1].get("com", 0.0))
    assert levels["contact"][1] == 0.0
    page = write_readout(READOUT, levels, 1.0)
    shown = [name for name, pair in levels.items() if any(pair)]
    assert "contact" not in shown and all(f">{name}<" in page for name in shown)
    assert page.count(">outside<") == 1 and page.count(">inside<") == len(shown) - 1


def test_policy_without_a_record_is_outside_of_nothing():
    catalogue = paper_catalogue()
    assert read_mastered("stand") is None
    values = middle_values(catalogue) | {"mass.scale": np.array([3.5])}
    page = write_readout(READOUT, compare_levels(catalogue, values, None), 1.0)
    assert "outside" not in page and page.count("unknown") == 7
