"""Instances from seeds: the same again and again, and evenly spread."""

import numpy as np
import pytest

from horizon_rl.domains import FromSeeds, paper_catalogue
from horizon_rl.domains.seeds import levels_of, unit_numbers
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import decode, encode

PAPER = paper_catalogue()
GROUPS = ("mass", "com")
KNOWN = FromSeeds(GROUPS, seeds=(7, 8, 9), weights=(0.5, 0.0, 1.5), share=0.8)
MASK = (1 << 64) - 1


def splitmix(state: int, steps: int) -> int:
    """Return a number of splitmix64's sequence, by the book."""
    z = (state + steps * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def test_numbers_are_those_of_splitmix():
    # The first output of the published generator from seed 1234567.
    assert splitmix(1234567, 1) == 6457827717110365317
    found = unit_numbers(np.array([0, 1234567]), 3)
    for row, seed in enumerate((0, 1234567)):
        start = splitmix(seed, 1)
        expected = [(splitmix(start, k) >> 11) / 2**53 for k in (1, 2, 3)]
        assert found[row].tolist() == expected


def test_a_row_depends_on_its_seed_only():
    some, more = unit_numbers(np.array([5, 6]), 4), unit_numbers(np.array([6]), 9)
    np.testing.assert_array_equal(some[1], more[0, :4])


def test_numbers_are_even_and_unrelated():
    unit = unit_numbers(np.arange(20_000), 4)
    assert np.abs(unit.mean(axis=0) - 0.5).max() < 0.01
    counts = np.stack([np.bincount((column * 10).astype(int)) for column in unit.T])
    assert counts.shape == (4, 10) and np.abs(counts / 2000.0 - 1.0).max() < 0.1
    related = np.corrcoef(unit.T) - np.eye(4)
    assert np.abs(related).max() < 0.03
    assert abs(np.corrcoef(unit[1:, 0], unit[:-1, 0])[0, 1]) < 0.03


def test_known_instances_are_met_again_to_the_bit_and_new_ones_are_new():
    first, second = (KNOWN.sample(PAPER, 500, np.random.default_rng(k)) for k in (0, 1))
    known, new = first["trains"] == 1.0, first["trains"] == 0.0
    assert 0.75 < known.mean() < 0.85 and (known | new).all()
    assert set(first["seed"][known]) == {7.0, 9.0}, "8 has no weight"
    assert 0.2 < (first["seed"][known] == 7.0).mean() < 0.3
    assert len({*first["seed"][new], *second["seed"]}) > 150
    for seed in (7.0, 9.0):
        one = np.flatnonzero(first["seed"] == seed)
        other = np.flatnonzero(second["seed"] == seed)
        for name in PAPER.parameters:
            assert (first[name][one] == first[name][one[0]]).all(), name
            assert (second[name][other] == first[name][one[0]]).all(), name


def test_levels_are_even_and_parameters_lie_in_the_ranges_at_them():
    drawn = FromSeeds(GROUPS).sample(PAPER, 4000, np.random.default_rng(3))
    assert not drawn["trains"].any()
    levels = levels_of(drawn["seed"], GROUPS)
    for group, level in levels.items():
        assert np.quantile(level, [0.1, 0.5, 0.9]) == pytest.approx(
            [0.1, 0.5, 0.9], abs=0.03
        )
        for parameter in PAPER[group].parameters:
            values = drawn[f"{group}.{parameter.name}"].reshape(4000, -1)
            for k in range(0, 4000, 97):
                low, high = (
                    parameter.range_at(level[k]).low,
                    parameter.range_at(level[k]).high,
                )
                assert (values[k] >= low - 1e-9).all() and (
                    values[k] <= high + 1e-9
                ).all()
    inertia = PAPER.parameters["inertia.scale"].baseline
    assert (drawn["inertia.scale"] >= inertia.low).all()
    assert (drawn["inertia.scale"] <= inertia.high).all()


def test_levels_without_parameters_are_those_of_the_instances():
    drawn = KNOWN.sample(PAPER, 50, np.random.default_rng(4))
    levels, marks = KNOWN.sample_levels(50, np.random.default_rng(4))
    np.testing.assert_array_equal(marks["seed"], drawn["seed"])
    np.testing.assert_array_equal(marks["trains"], drawn["trains"])
    np.testing.assert_array_equal(
        levels["com"], levels_of(drawn["seed"], GROUPS)["com"]
    )


def test_first_instances_do_not_depend_on_how_many_are_drawn():
    few, many = (KNOWN.sample(PAPER, n, np.random.default_rng(5)) for n in (3, 30))
    for name, values in few.items():
        np.testing.assert_array_equal(values, many[name][:3])


def test_quantiles_are_of_what_is_trained_on():
    levels = levels_of((7, 8, 9), GROUPS)["mass"]
    low, high = sorted((levels[0], levels[2]))
    share = 0.25 if levels[0] == low else 0.75
    assert KNOWN.quantile("mass", share - 0.01) == round(low, 4)
    assert KNOWN.quantile("mass", share + 0.01) == round(high, 4)
    assert FromSeeds(GROUPS).quantile("mass", 0.9) == 0.9


def test_it_is_plain_data():
    assert decode(FromSeeds, encode(KNOWN)) == KNOWN


@pytest.mark.parametrize(
    "wrong", [{"seeds": (1,)}, {"share": 0.5}, {"weights": (1.0,), "share": 0.5}]
)
def test_weights_without_seeds_and_the_reverse_are_refused(wrong):
    with pytest.raises(InputError, match="accepted: as many of each"):
        FromSeeds(GROUPS, **wrong)


def test_unknown_group_is_refused_by_those_that_exist():
    with pytest.raises(InputError, match="unknown group 'mas'.*mass"):
        FromSeeds(("mas",)).sample(PAPER, 1, np.random.default_rng(0))
