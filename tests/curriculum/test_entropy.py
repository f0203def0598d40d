"""DORAEMON's update: the mathematics, and optima that were found another way."""

from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from scipy.special import betainc, betaln, psi

from horizon_rl.curriculum.entropy import (
    MAX_SHAPE,
    MIN_SHAPE,
    TOLERANCE,
    Success,
    Term,
    divergence,
    divergence_gradient,
    divergence_hessian,
    entropy,
    entropy_gradient,
    entropy_hessian,
    update,
)

START = np.array([[1.0], [100.0]])


def shapes_of(dims=3, seed=0):
    return np.random.default_rng(seed).uniform(0.6, 8.0, (2, dims))


def drawn(shapes, n, seed=0):
    a, b = shapes
    return np.random.default_rng(seed).beta(a, b, (n, shapes.shape[1]))


def even_levels(shapes, n=4000):
    """One level at the middle of each of n equal shares: a sample without luck."""
    return stats.beta.ppf((np.arange(n) + 0.5) / n, *shapes)[:, None]


def numerical(function, shapes):
    flat = optimize.approx_fprime(
        shapes.ravel(), lambda x: function(x.reshape(shapes.shape)), 1e-6
    )
    return np.reshape(np.asarray(flat), shapes.shape)


def test_without_a_success_that_is_asked_for_it_widens_all_the_same():
    levels = drawn(START, 50)
    found = update(START, levels, np.zeros(50), min_success=0.0, max_step=0.1)
    assert found.outcome != "kept" and entropy(found.shapes) > entropy(START)
    assert found.success == 0.0 and 0.0 < found.step <= 0.1


def test_entropy_is_scipy_s_and_zero_where_uniform():
    shapes = shapes_of()
    assert entropy(shapes) == pytest.approx(stats.beta.entropy(*shapes).sum())
    assert entropy(np.ones((2, 3))) == pytest.approx(0.0, abs=1e-12)


def test_divergence_is_the_integral_over_the_old_density():
    old, new = np.array([[2.0], [5.0]]), np.array([[1.2], [3.0]])
    x = np.linspace(1e-6, 1 - 1e-6, 400_001)
    p, q = (stats.beta.pdf(x, *shape[:, 0]) for shape in (old, new))
    assert divergence(old, new) == pytest.approx(np.trapezoid(p * np.log(p / q), x))
    assert divergence(old, new) != pytest.approx(divergence(new, old), rel=0.05)
    assert divergence(old, old) == pytest.approx(0.0, abs=1e-12)


def test_divergence_between_betas_at_the_baseline_is_closed():
    old, new = np.array([[1.0], [50.0]]), np.array([[1.0], [20.0]])
    assert divergence(old, new) == pytest.approx(0.4 - 1.0 - np.log(0.4))


def test_gradients_and_hessians_are_the_numerical_ones():
    old, shapes = shapes_of(seed=1), shapes_of(seed=2)
    success = Success(old, drawn(old, 500), np.arange(500) % 3 > 0)
    near = Term(
        lambda s: divergence(old, s),
        lambda s: divergence_gradient(old, s),
        divergence_hessian,
    )
    for term in (
        Term(entropy, entropy_gradient, entropy_hessian),
        Term(success, success.gradient, success.hessian),
        near,
    ):
        found = term.gradient(shapes)
        assert found == pytest.approx(numerical(term.value, shapes), rel=1e-3, abs=1e-5)
        for row, place in enumerate(np.ndindex(2, 3)):
            slope = numerical(lambda s, p=place, t=term: t.gradient(s)[p], shapes)
            expected = slope.ravel()
            assert term.hessian(shapes)[row] == pytest.approx(
                expected, rel=1e-3, abs=1e-5
            )


def test_success_is_the_plain_mean_of_weighted_successes():
    old, new, n = shapes_of(2, 3), shapes_of(2, 4), 300
    levels, success = drawn(old, n), np.arange(n) % 2
    density = [stats.beta.pdf(levels, *s).prod(axis=1) for s in (new, old)]
    expected = np.mean(density[0] / density[1] * success)
    assert Success(old, levels, success)(new) == pytest.approx(expected)
    assert Success(old, levels, success)(old) == pytest.approx(0.5)


def test_levels_at_the_very_ends_give_no_nan():
    levels = np.array([[0.0], [1.0], [0.5], [0.01]])
    found = update(START, levels, np.ones(4), min_success=0.5, max_step=0.1)
    assert np.all(np.isfinite(found.shapes)) and np.isfinite(found.success)


def widest_by_brute_force(limit, min_success):
    """The largest entropy on a fine grid of shapes, by exact probabilities."""
    a, b = np.meshgrid(
        np.geomspace(MIN_SHAPE, 10.0, 500), np.geomspace(MIN_SHAPE, 60.0, 500)
    )
    # Of 250,000 pairs scipy.stats takes half a minute; at the best one it checks this.
    found = betaln(a, b) - (a - 1) * psi(a) - (b - 1) * psi(b)
    found += (a + b - 2) * psi(a + b)
    found[betainc(a, b, limit) < min_success] = -np.inf
    best = np.unravel_index(np.argmax(found), found.shape)
    assert found[best] == pytest.approx(stats.beta.entropy(a[best], b[best]))
    return np.array([[a[best]], [b[best]]]), found[best]


@pytest.mark.parametrize(("limit", "min_success"), [(0.2, 0.5), (0.4, 0.5), (0.3, 0.8)])
def test_it_arrives_at_the_widest_beta_that_brute_force_finds(limit, min_success):
    shapes, step = START, 0.05
    for _ in range(16):
        levels = even_levels(shapes)
        success = (levels[:, 0] <= limit).astype(float)
        found = update(shapes, levels, success, min_success=min_success, max_step=step)
        assert found.success >= min_success - TOLERANCE
        assert divergence(shapes, found.shapes) <= step
        assert entropy(found.shapes) >= entropy(shapes) or success.mean() < min_success
        shapes = found.shapes
    best, most = widest_by_brute_force(limit, min_success)
    # The sample has 4000 levels: its success is exact to a few of them.
    assert entropy(shapes) == pytest.approx(most, abs=0.004)
    assert stats.beta.cdf(limit, *shapes[:, 0]) == pytest.approx(min_success, abs=2e-3)
    assert divergence(best, shapes) < 2e-3


def test_it_becomes_uniform_where_all_succeeds_and_stays():
    shapes, found = START, None
    for _ in range(20):
        levels = even_levels(shapes, 500)
        found = update(shapes, levels, np.ones(500), min_success=0.5, max_step=0.05)
        shapes = found.shapes
    assert shapes == pytest.approx(np.ones((2, 1)), abs=1e-3)
    assert found and found.outcome == "kept"


def test_a_start_that_is_infeasible_recovers():
    shapes, limit = np.array([[2.0, 2.0], [3.0, 3.0]]), 0.3
    seen, outcomes = [], []
    for k in range(12):
        levels = drawn(shapes, 3000, k)
        success = (levels.max(axis=1) <= limit).astype(float)
        found = update(shapes, levels, success, min_success=0.5, max_step=0.1)
        assert divergence(shapes, found.shapes) <= 0.1
        seen.append(success.mean())
        outcomes.append(found.outcome)
        shapes = found.shapes
    assert seen[0] < 0.2 and outcomes[0] == "moved to success"
    assert seen[-1] == pytest.approx(0.5, abs=0.05) and outcomes[-1] == "widened"


@pytest.mark.parametrize(
    ("outer", "dims", "share", "step", "seed"),
    [
        *((100.0, 2, 0.7, 0.01, 4), (100.0, 4, 0.55, 0.0346, 4)),
        *((100.0, 4, 0.7, 0.5, 3), (170.0, 1, 1.0, 0.05, 0)),
        *((190.0, 2, 1.0, 0.05, 0), (190.0, 4, 1.0, 0.07, 0)),
    ],
)
def test_it_widens_where_the_first_attempt_to_solve_fails(
    outer, dims, share, step, seed
):
    """Three of these are from the default start: one attempt alone is not enough."""
    old = np.array([[1.0] * dims, [outer] * dims])
    levels = drawn(old, 600, seed)
    hardest = levels.max(axis=1)
    success = (hardest <= np.quantile(hardest, share)).astype(float)
    found = update(old, levels, success, min_success=0.5, max_step=step)
    assert found.outcome == "widened" and entropy(found.shapes) > entropy(old)
    # As far as either bound allows.
    assert 0.99 * step < found.step <= step or found.success < 0.501
    assert found.success >= 0.5 - TOLERANCE


@pytest.mark.parametrize("success", [0.0, np.nan])
def test_no_success_and_no_episodes_keep_what_there_is(success):
    none = np.zeros((0, 1)) if np.isnan(success) else drawn(START, 50)
    found = update(START, none, np.zeros(len(none)), min_success=0.5, max_step=0.1)
    assert (found.outcome, found.success) == ("kept", 0.0)
    assert np.array_equal(found.shapes, START)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 4),
    st.integers(0, 1000),
    st.floats(0.2, 0.9),
    st.floats(0.002, 0.4),
    st.floats(0.05, 0.95),
)
def test_bounds_hold_whatever_the_episodes(dims, seed, min_success, step, limit):
    rng = np.random.default_rng(seed)
    old = np.exp(rng.uniform(np.log(MIN_SHAPE), np.log(60.0), (2, dims)))
    levels = np.round(rng.beta(old[0], old[1], (400, dims)), 6)
    chance = np.where(levels.mean(axis=1) <= limit, 0.9, 0.2)
    success = (rng.random(400) < chance).astype(float)
    found = update(old, levels, success, min_success=min_success, max_step=step)
    assert np.all((found.shapes >= MIN_SHAPE * 0.999) & (found.shapes <= MAX_SHAPE))
    assert divergence(old, found.shapes) <= step
    before = success.mean()
    if found.outcome == "widened":
        assert found.success >= min_success - TOLERANCE
    if found.outcome == "widened" and before >= min_success:
        assert entropy(found.shapes) > entropy(old)
    if found.outcome == "moved to success":
        # Beyond `min_success` too, where nothing wider within reach is as successful.
        assert found.success > before
    again = update(old, levels, success, min_success=min_success, max_step=step)
    assert np.array_equal(found.shapes, again.shapes)


def test_noise_of_the_last_bit_does_not_show():
    shapes = np.array([[1.0, 0.9], [20.0, 5.0]])
    levels = drawn(shapes, 2000)
    success = (levels.max(axis=1) <= 0.3).astype(float)
    found = [
        update(shapes * (1 + e), levels, success, min_success=0.5, max_step=0.1).shapes
        for e in (0.0, 1e-15)
    ]
    assert np.array_equal(found[0], found[1])


def test_a_decision_of_15_levels_and_4000_episodes_takes_less_than_2_s():
    for outer in (30.0, 3.0):
        shapes = np.array([[1.0] * 15, [outer] * 15])
        levels = drawn(shapes, 4000)
        success = (levels.max(axis=1) <= np.quantile(levels.max(axis=1), 0.65)) * 1.0
        for min_success in (0.5, 0.67):
            began = process_time()
            update(shapes, levels, success, min_success=min_success, max_step=0.3)
            assert process_time() - began < 2.0
