"""Statistics over seeds, against numbers worked by hand."""

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("scipy")

from scipy.stats import bootstrap, mannwhitneyu

from horizon_rl.evaluation.statistics import (
    Interval,
    improvement_probability,
    interquartile_mean,
    paired_difference,
    share_interval,
    spread_by_column,
    wilson_interval,
)
from horizon_rl.support.errors import InputError

PAGE = Path(__file__).parents[2] / "docs" / "diagnostic.md"
FLAT = np.full((3, 2), 0.4)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def scores():
    """Five seeds, four columns."""
    return np.random.default_rng(7).uniform(0.2, 0.9, (5, 4))


def test_spread_is_mean_and_sample_deviation_of_each_column():
    # Column 0: mean 0.6, squares 0.01 + 0 + 0.01, over n - 1 = 2: 0.01, root 0.1.
    first, second = spread_by_column([[0.5, 0.2], [0.6, 0.2], [0.7, 0.2]])
    assert (first.mean, first.sd, first.seeds) == (
        *(pytest.approx(0.6), pytest.approx(0.1)),
        3,
    )
    assert second.sd == pytest.approx(0.0, abs=1e-12)
    assert str(first) == "60.0 ± 10.0"


def test_one_seed_has_a_mean_but_neither_deviation_nor_interval(rng):
    (spread,) = spread_by_column([[0.693]])
    assert spread.sd is None and str(spread) == "69.3"
    assert interquartile_mean([[0.1, 0.5]], rng).interval is None
    assert improvement_probability([[0.1]], [[0.2], [0.3]], rng).interval is None


def test_interquartile_mean_is_that_of_the_middle_half(rng):
    # 1 2 | 3 4 5 6 | 7 8: (3 + 4 + 5 + 6) / 4 = 4.5; an outlier changes nothing.
    table = np.array([[1, 5], [2, 6], [3, 7], [4, 8]])
    assert interquartile_mean(table, rng).value == 4.5
    assert interquartile_mean(np.where(table == 8, 800, table), rng).value == 4.5
    # Of five scores one goes at either end: (2 + 3 + 4) / 3.
    assert interquartile_mean([[1], [2], [3], [4], [50]], rng).value == 3.0


def test_probability_of_improvement_counts_pairs_and_halves_ties(rng):
    # Column 0: 5 > 3, 5 = 5, 7 > 3, 7 > 5 -> 3.5 of 4 pairs.
    # Column 1: 1 < 2, 1 < 4, 3 > 2, 3 < 4 -> 1 of 4. Mean (0.875 + 0.25) / 2.
    x, y = [[5, 1], [7, 3]], [[3, 2], [5, 4]]
    assert improvement_probability(x, y, rng).value == 0.5625
    assert improvement_probability(y, x, rng).value == 1.0 - 0.5625


def test_probability_of_improvement_is_mann_whitneys_u(rng, scores):
    others = np.round(scores[:3] + 0.1, 1)
    scores = np.round(scores, 1)
    u = [
        float(mannwhitneyu(scores[:, i], others[:, i]).statistic) / (5 * 3)
        for i in range(4)
    ]
    assert improvement_probability(scores, others, rng).value == pytest.approx(
        np.mean(u)
    )


def test_difference_between_methods_resamples_seeds(rng):
    # Seed means of X 0.5 and 1, of Y 0 and 0.5: 0.75 - 0.25. Resampled means of X are
    # 0.5, 0.75, 1, of Y 0, 0.25, 0.5; both ends, 0 and 1, come with probability 1/16.
    x, y = [[1, 0], [1, 1]], [[0, 0], [0, 1]]
    difference = paired_difference(x, y, rng)
    assert (difference.value, difference.unit) == (0.5, "seed")
    assert difference.interval == Interval(0.0, 1.0)


def test_difference_between_checkpoints_resamples_pairs_of_scenarios(rng):
    # Hard for both or easy for both, X better by one scenario in four, always.
    x = np.tile([[0, 0, 1, 1]], 50)
    y = np.tile([[0, 0, 1, 0]], 50)
    difference = paired_difference(x, y, rng)
    assert (difference.value, difference.unit) == (0.25, "scenario")
    # Standard error of the pairs: sqrt(0.25 * 0.75 / 200) = 0.0306. Taken apart they
    # would have sqrt(0.25 / 200 + 0.1875 / 200) = 0.0468.
    width = difference.interval.high - difference.interval.low
    assert width == pytest.approx(2 * 1.96 * 0.0306, rel=0.1)


def test_one_seed_against_several_speaks_of_checkpoints_only(rng, scores):
    assert paired_difference(scores[:1], scores[1:], rng).unit == "scenario"


def test_shift_of_all_scenarios_is_certain_however_hard_they_are(rng, scores):
    difference = paired_difference(scores[:1] + 0.05, scores[:1], rng)
    assert difference.interval.low == pytest.approx(0.05)
    assert difference.interval.high == pytest.approx(0.05)


def test_wilson_interval_at_known_values():
    # z = 1.95996, z^2 = 3.84146. None of 10: from 0 to z^2 / (10 + z^2) = 0.27753.
    # Half of 10: 0.5 -+ (z / (1 + z^2 / 10)) sqrt(0.025 + z^2 / 400) = 0.5 -+ 0.26341.
    none, half, all_ = (wilson_interval(k, 10) for k in (0, 5, 10))
    assert (none.low, none.high) == pytest.approx((0.0, 0.27753), abs=1e-5)
    assert (half.low, half.high) == pytest.approx((0.23659, 0.76341), abs=1e-5)
    assert (all_.low, all_.high) == pytest.approx((1.0 - 0.27753, 1.0), abs=1e-5)


def test_interval_of_shares_is_that_of_episodes_with_the_same_standard_error():
    # Yes and no: as many episodes as there are.
    assert share_interval([1.0, 0.0, 1.0, 0.0]) == wilson_interval(2, 4)
    # 0.25 and 0.75: variance 1/16 where yes and no have 1/4, so four times as many.
    found, four = share_interval([0.25, 0.75] * 5), wilson_interval(20, 40)
    assert (found.low, found.high) == pytest.approx((four.low, four.high))
    # No variance at all: never more certain than episodes that all went one way.
    assert share_interval([1.0] * 10) == wilson_interval(10, 10)


def test_equal_seeds_leave_no_doubt(rng):
    assert interquartile_mean(FLAT, rng).interval == Interval(0.4, 0.4)
    assert improvement_probability(FLAT, FLAT, rng).interval == Interval(0.5, 0.5)
    higher = improvement_probability(FLAT + 0.1, FLAT, rng)
    assert (higher.value, higher.interval) == (1.0, Interval(1.0, 1.0))
    assert paired_difference(FLAT, FLAT, rng).interval == Interval(0.0, 0.0)


@pytest.mark.parametrize("whole_seeds", [False, True])
def test_interval_holds_the_estimate_and_repeats_itself(scores, whole_seeds):
    def estimates():
        rng = np.random.default_rng(3)
        other = scores[::-1, ::-1] + 0.05
        return (
            interquartile_mean(scores, rng, whole_seeds=whole_seeds),
            improvement_probability(scores, other, rng, whole_seeds=whole_seeds),
            paired_difference(scores, other, rng),
        )

    assert estimates() == estimates()
    for estimate in estimates():
        assert estimate.interval is not None
        assert estimate.interval.low < estimate.value < estimate.interval.high


def test_order_of_seeds_and_columns_does_not_matter(rng, scores):
    mixed = scores[[3, 0, 4, 1, 2]][:, [2, 0, 3, 1]]
    value = interquartile_mean(scores, rng).value
    assert interquartile_mean(mixed, rng).value == pytest.approx(value)
    mixed, other = scores[[3, 0, 4, 1, 2]], scores[:3] + 0.02
    for measure in (improvement_probability, paired_difference):
        value = measure(scores, other, rng).value
        assert measure(mixed, other, rng).value == pytest.approx(value)


def test_whole_seeds_do_not_lose_what_the_columns_of_a_seed_share(rng):
    # Eight columns that say the same: no more is known than from one of them.
    one = np.random.default_rng(5).normal(0.5, 0.05, (5, 1))
    eight = np.tile(one, 8)

    def width(table, **how):
        interval = interquartile_mean(table, rng, **how).interval
        assert interval is not None
        return interval.high - interval.low

    single = width(one)
    assert width(eight, whole_seeds=True) > 0.9 * single
    assert width(eight) < 0.6 * single


def test_interval_agrees_with_scipys_bootstrap(rng, scores):
    other = scores[::-1] + 0.1
    ours = paired_difference(scores, other, rng).interval
    theirs = bootstrap(
        (scores.mean(axis=1), other.mean(axis=1)),
        lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis),
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs), abs=0.01)


def test_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(11)
    hits = 0
    for _ in range(200):
        drawn = rng.normal(0.5, 0.1, (20, 1)), rng.normal(0.4, 0.1, (20, 1))
        interval = paired_difference(*drawn, rng).interval
        hits += interval.low <= 0.1 <= interval.high
    # 95 % asked for; 20 seeds give a little less, and 200 trials scatter by 1.5 %.
    assert 0.89 <= hits / 200 <= 0.99


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([], "shape"),
        ([0.5, 0.6], r"shape \(2,\); accepted: \[seeds, columns"),
        (np.zeros((0, 3)), r"shape \(0, 3\)"),
        ([[0.5, float("nan")]], "not all finite"),
    ],
)
def test_bad_tables_are_refused(scores, message, rng):
    for call in (spread_by_column, lambda table: interquartile_mean(table, rng)):
        with pytest.raises(InputError, match=message):
            call(scores)


def test_scenarios_and_columns_must_be_the_same(rng):
    with pytest.raises(InputError, match=r"shape \(1, 2\) and \(1, 3\)"):
        paired_difference([[1, 0]], [[1, 0, 1]], rng)
    with pytest.raises(InputError, match=r"shape \(1, 2\) and \(1, 1\)"):
        improvement_probability([[1, 0]], [[1]], rng)


def test_example_in_the_docs_runs_and_prints_what_the_page_says(capsys):
    text = PAGE.read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(code, {})
    printed = re.findall(r"print\(.*\)  # (.*)", code)
    assert capsys.readouterr().out.splitlines() == printed
