"""Explanations of failures whose cause is known."""

from dataclasses import replace

import numpy as np
import pytest

from horizon_rl.evaluation.evaluate import Evaluation
from horizon_rl.evaluation.explain import bin_success, explain, quantities, worst
from horizon_rl.evaluation.suite_file import load_suite
from horizon_rl.policies.load import load_policy
from horizon_rl.show.evaluation_tables import factors_table, failures_table
from horizon_rl.show.failure_figure import failure_figure
from horizon_rl.task import EpisodeTable

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def column():
    """Return a column in which everything varies."""
    return load_suite("ood", 1.0).frozen["all"]


def test_what_decides_comes_first(column):
    mass = column.instances["mass.scale"]
    first, *others = explain(column, mass <= 2.0)
    assert (first.name, first.group, first.unit) == ("mass.scale", "mass", "")
    assert first.separation == 1.0 and first.chance < 1e-100
    assert all(f.chance >= first.chance for f in others)
    np.testing.assert_array_equal(first.values, mass)
    # Eight steps of 0.575 from 0.4 to 5.0: the third reaches past 2.
    assert [b.low for b in first.bins] == pytest.approx(
        [0.4, 0.975, 1.55, 2.125, 2.7, 3.275, 3.85, 4.425], abs=0.01
    )
    assert first.bins[-1].high == pytest.approx(5.0, abs=0.01)
    shares = [b.success for b in first.bins]
    assert shares[:2] == [1.0, 1.0] and shares[3:] == [0.0] * 5
    assert shares[2] == pytest.approx(0.45 / 0.575, abs=0.1)
    assert sum(b.episodes for b in first.bins) == 1024


def test_separation_says_on_which_side_failures_lie(column):
    mass = column.instances["mass.scale"]
    below = explain(column, mass >= 2.0)[0]
    assert below.name == "mass.scale" and below.separation == 0.0
    # Hand-worked: of the pairs (lost, won), the lost one is larger in 3 of 4.
    four = replace(column, instances=column.instances | {"mass.scale": np.arange(4.0)})
    small = explain(four, np.array([True, False, True, False]))
    assert {f.name: f for f in small}["mass.scale"].separation == 0.75


def test_length_of_a_vector_is_found_where_no_axis_tells(column):
    offset = column.instances["com.offset"]
    won = np.linalg.norm(offset, axis=1) < 0.25
    first = explain(column, won)[0]
    assert first.name == "|com.offset|" and first.separation == 1.0


def test_what_has_nothing_to_do_with_it_is_likely_chance(column):
    won = np.random.default_rng(0).random(1024) < 0.5
    factors = explain(column, won)
    assert len(factors) > 15
    assert all(f.chance > 1e-4 for f in factors)
    assert all(0.4 < (f.separation or 0.0) < 0.6 for f in factors)


@pytest.mark.parametrize("outcome", [True, False])
def test_all_or_none_failed(column, outcome):
    factors = explain(column, np.full(1024, outcome))
    assert factors
    assert {f.separation for f in factors} == {None}
    assert {f.chance for f in factors} == {1.0}
    assert all(b.success == outcome for f in factors for b in f.bins)


def test_what_does_not_vary_is_left_out(make_suite):
    suite = make_suite("""
        episodes = 8
        [columns.a.parameters]
        mass.scale = 2.0
        com.offset = [0.0, [0.0, 0.1], 0.0]
    """)
    won = np.arange(8) % 2 == 0
    names = {f.name for f in explain(suite.frozen["a"], won)}
    assert "mass.scale" not in names and "com.offset x" not in names
    assert {"com.offset y", "|com.offset|", "commanded speed"} <= names


def test_table_leaves_a_gap_where_no_scenario_lies(column):
    mass = np.array([0.0, 0.5, 1.5, 7.0, 8.0])
    few = replace(column, instances=column.instances | {"mass.scale": mass})
    won = np.array([True, True, False, False, False])
    factors = [f for f in explain(few, won) if f.name == "mass.scale"]
    shares = [row[3] for row in factors_table("all", factors).rows]
    # Eight steps from 0 to 8, the last of which holds both 7 and 8.
    assert [str(cell).split() for cell in shares] == [
        ["100", "0", *["-"] * 5, "0"],
    ]


def test_bins_by_hand(monkeypatch):
    monkeypatch.setattr("horizon_rl.evaluation.explain.NUM_BINS", 4)
    values = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 8.0])
    won = np.array([True, False, True, True, False, False])
    bins = bin_success(values, won)
    # Nothing lies in 6..8 but its upper end; 2 belongs to the second stretch.
    assert [(b.low, b.high, b.episodes, b.success) for b in bins] == [
        (0.0, 2.0, 2, 0.5),
        (2.0, 4.0, 2, 1.0),
        (4.0, 6.0, 1, 0.0),
        (6.0, 8.0, 1, 0.0),
    ]
    assert bins[1].interval.low < 1.0 and bins[1].interval.high == pytest.approx(1.0)


def test_push_that_never_comes_is_no_quantity(column, make_suite):
    found = quantities(column, 10)
    assert "|disturbance.push_velocity| 1" in found
    assert "|disturbance.push_velocity| 2" in found
    text = "episodes = 64\n[task]\nepisode_s = 6.0\n[columns]\na = {}"
    half = make_suite(text).frozen["a"]
    # The second comes 10 s after the first at least, when the episode is over.
    assert "|disturbance.push_velocity| 2" not in quantities(half, 64)
    _, _, speed = quantities(half, 64)["|disturbance.push_velocity| 1"]
    comes = half.push_steps[:, 0] < 300
    assert 0 < comes.sum() < 64
    assert (speed[~comes] == 0.0).all() and (speed[comes] > 0.0).all()


def test_worst_ended_first_or_tracked_worst(column, monkeypatch):
    n = 6
    episodes = EpisodeTable(
        start=np.zeros(n, int),
        length=np.array([1000, 30, 1000, 20, 30, 1000]),
        tracking_error=np.array([0.5, 0.1, 0.9, 0.2, 0.3, 0.1]),
        yaw_error=np.zeros(n),
        returns=np.zeros(n),
        cause=np.array([0, 1, 0, 2, 1, 0]),
        row=np.arange(n),
    )
    won = np.array([False, False, False, False, False, True])
    assert worst(episodes, won).tolist() == [3, 4, 1, 2, 0]
    assert len(worst(episodes, np.ones(n, bool))) == 0
    policy, suite = load_policy("stand"), load_suite("ood", 0.5)
    factors = explain(column, np.concatenate([won, np.zeros(1018, bool)]))
    evaluation = Evaluation(policy, suite, {"all": episodes})
    table = failures_table(evaluation, "all", factors)
    # By the suite's own word, 0 fails by its tracking, 1 and 4 by their lengths.
    assert [row[0] for row in table.rows] == ["3", "4", "1", "2", "0"]
    assert [row[3] for row in table.rows] == ["tilt", "trunk", "trunk", "none", "none"]
    assert table.rows[0][4] == f"{factors[0].values[3]:.3g}"
    monkeypatch.setattr("horizon_rl.evaluation.explain.NUM_WORST", 2)
    assert worst(episodes, won).tolist() == [3, 4]
    assert len(table.headings) == 7


def test_figure_is_a_picture(column, tmp_path):
    factors = explain(column, column.instances["mass.scale"] <= 2.0)
    failure_figure(factors[:4], "title").savefig(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(PNG)
