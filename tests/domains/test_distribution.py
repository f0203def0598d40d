"""Instances are uniform in their ranges, and reproducible from their generator."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

from horizon_rl.domains import (
    AtLevels,
    Catalogue,
    Distribution,
    InRanges,
    Instances,
    Range,
    paper_catalogue,
    sample,
)
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import decode, dumps, encode

PAPER = paper_catalogue()
FULL = dict.fromkeys(PAPER.names, 1.0)


def draw(levels, n, seed=0):
    return AtLevels(levels).sample(PAPER, n, np.random.default_rng(seed))


def test_every_draw_lies_in_its_range_and_fills_it():
    ranges = PAPER.ranges(FULL)
    for name, values in draw(FULL, 4000).items():
        low, high = ranges[name].low, ranges[name].high
        assert values.min() >= low and values.max() <= high
        quarters = np.histogram(values, bins=4, range=(low, high))[0] / values.size
        assert np.abs(quarters - 0.25).max() < 0.03, f"{name}: {quarters}"


def test_draws_are_independent_of_each_other():
    columns = np.column_stack([v.reshape(4000, -1) for v in draw(FULL, 4000).values()])
    correlation = np.corrcoef(columns.T) - np.eye(columns.shape[1])
    assert np.abs(correlation).max() < 0.08


def test_parameters_with_several_draws_have_a_column_for_each():
    instances = draw({}, 5)
    assert instances["mass.scale"].shape == (5,)
    assert instances["com.offset"].shape == (5, 3)
    assert instances["reset.joint_velocity"].shape == (5, 12)


def test_same_generator_gives_the_same_instances():
    for a, b in zip(draw(FULL, 9).values(), draw(FULL, 9).values(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_first_instances_do_not_depend_on_how_many_are_drawn():
    few, many = draw(FULL, 3), draw(FULL, 30)
    for name in few:
        np.testing.assert_array_equal(few[name], many[name][:3])


def test_one_seed_gives_the_same_place_in_a_narrow_and_a_wide_range():
    narrow, wide = draw({}, 8)["mass.scale"], draw({"mass": 1.0}, 8)["mass.scale"]
    np.testing.assert_allclose((narrow - 0.9) / 0.2, (wide - 0.4) / 4.6)


def test_exact_value_is_a_range_without_width():
    exact = InRanges(PAPER.ranges({}) | {"mass.scale": Range(5.0, 5.0)})
    instances = exact.sample(PAPER, 10, np.random.default_rng(1))
    assert (instances["mass.scale"] == 5.0).all()


def test_unknown_and_missing_parameters_are_refused():
    ranges = PAPER.ranges({})
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="missing or unknown parameters: mass.scal. "):
        sample(PAPER, {**ranges, "mass.scal": Range(1, 2)}, 1, rng)
    del ranges["mass.scale"]
    with pytest.raises(InputError, match="missing or unknown parameters: mass.scale. "):
        sample(PAPER, ranges, 1, rng)


def test_levels_give_the_instances_of_their_ranges():
    levels = {"mass": 0.5, "com": 1.0}
    expected = sample(PAPER, PAPER.ranges(levels), 6, np.random.default_rng(2))
    for name, values in draw(levels, 6, seed=2).items():
        np.testing.assert_array_equal(values, expected[name])


@pytest.mark.parametrize(
    "value", [AtLevels({"mass": 0.1 + 0.2}), InRanges({"mass.scale": Range(0.7, 3.0)})]
)
def test_distributions_survive_json_to_the_bit(value):
    assert decode(type(value), json.loads(dumps(encode(value)))) == value


@dataclass(frozen=True)
class AtTheBoundary:
    """A method's own distribution: one parameter at the end of its range (ADR)."""

    levels: dict[str, float]
    parameter: str

    def sample(
        self, catalogue: Catalogue, n: int, rng: np.random.Generator
    ) -> Instances:
        instances = AtLevels(self.levels).sample(catalogue, n, rng)
        end = catalogue.ranges(self.levels)[self.parameter].high
        return instances | {self.parameter: np.full(n, end)}


def test_a_distribution_of_ones_own_needs_one_method_and_survives_json():
    mine = decode(AtTheBoundary, {"levels": {"mass": 1.0}, "parameter": "mass.scale"})
    drawn: Distribution = mine
    instances = drawn.sample(PAPER, 7, np.random.default_rng(0))
    assert (instances["mass.scale"] == 5.0).all()
    np.testing.assert_array_equal(
        instances["com.offset"], draw({"mass": 1.0}, 7)["com.offset"]
    )
