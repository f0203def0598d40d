"""The widest Beta distributions that still succeed: DORAEMON's update, in scipy.

Tiboni et al. (ICLR 2024): of all products of Beta distributions take the one of largest
entropy, among those near the present one whose success, estimated from the episodes at
hand, stays above a threshold. All functions are pure. `shapes` are [2, d]: a, then b.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import NonlinearConstraint, minimize
from scipy.special import betaln, expit, logit, polygamma, psi

MIN_SHAPE, MAX_SHAPE = 0.5, 200.0
"""Below 1 the density has a pole: mild at 0.5, and what lets most of the mass stay at
the baseline while the rest goes far. The uniform distribution, 1, is an interior point."""
TOLERANCE = 1e-4
"""By how much the estimated success of an update may miss its threshold."""
MARGIN = 1e-3
"""Share of the step that is left for rounding."""
EDGE = 1e-6
"""Levels nearer than this to 0 or 1 count as so near: outcomes have six digits."""
PRECISION = 1e-8
"""Slope at which the solver stops, and by how much it may be beyond its limits then."""
ATTEMPTS = (1.0, 1.0), (100.0, 1.0), (100.0, 0.1)
"""Weight of broken limits and length of the first step, at first as by default. Where the
solver goes far beyond its limits, the bounds of shapes may leave no slope to return by."""

Outcome = Literal["widened", "moved to success", "kept"]


@dataclass(frozen=True, eq=False)
class Update:
    """What became of a distribution."""

    outcome: Outcome
    shapes: np.ndarray
    """[2, d]"""
    success: float
    """Success that the episodes at hand let expect of it."""
    step: float
    """KL divergence of the old distribution from it."""


def entropy(shapes: np.ndarray) -> float:
    """Return the differential entropy in nats; 0 is the uniform distribution."""
    (a, b), total = shapes, shapes.sum(axis=0)
    terms = (a - 1) * psi(a) + (b - 1) * psi(b) - (total - 2) * psi(total)
    return float(np.sum(betaln(a, b) - terms))


def entropy_gradient(shapes: np.ndarray) -> np.ndarray:
    total = shapes.sum(axis=0)
    return (total - 2) * polygamma(1, total) - (shapes - 1) * polygamma(1, shapes)


def entropy_hessian(shapes: np.ndarray) -> np.ndarray:
    total = shapes.sum(axis=0)
    own = polygamma(1, shapes) + (shapes - 1) * polygamma(2, shapes)
    return blocks(-own, polygamma(1, total) + (total - 2) * polygamma(2, total))


def divergence(old: np.ndarray, new: np.ndarray) -> float:
    """Return KL(old || new), in nats: in that order, as the authors' code has it."""
    moved = (old - new) * mean_logs(old)
    return float(np.sum(betaln(*new) - betaln(*old)) + np.sum(moved))


def divergence_gradient(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return its gradient by the new shapes."""
    return mean_logs(new) - mean_logs(old)


def divergence_hessian(new: np.ndarray) -> np.ndarray:
    """Return its Hessian, which is Fisher's information: the old shapes do not count."""
    return blocks(polygamma(1, new), -polygamma(1, new.sum(axis=0)))


def blocks(own: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """Return a matrix over all shapes in which only the two of one level are coupled.

    Args:
        own: [2, d] of each shape alone.
        shared: [d] of both shapes of a level, and between them.
    """
    (a, b), cross = own + shared, np.diag(shared)
    return np.block([[np.diag(a), cross], [cross, np.diag(b)]])


def mean_logs(shapes: np.ndarray) -> np.ndarray:
    """Return the means of ln x and of ln(1 - x)."""
    return psi(shapes) - psi(shapes.sum(axis=0))


class Success:
    """Success that episodes of the old shapes let expect of others.

    By plain importance weights, not normalised: the mean of w * success, with w the
    ratio of the densities.
    """

    def __init__(self, old: np.ndarray, levels: np.ndarray, success: np.ndarray):
        inside = np.clip(levels, EDGE, 1.0 - EDGE)
        # An episode that failed adds nothing, whatever its weight.
        inside = inside[success > 0.0]
        self._logs = np.stack([np.log(inside), np.log1p(-inside)], axis=1)  # [n, 2, d]
        self._old, self._num_episodes = old, len(levels)

    def __call__(self, shapes: np.ndarray) -> float:
        return float(np.sum(self._weights(shapes))) / self._num_episodes

    def gradient(self, shapes: np.ndarray) -> np.ndarray:
        centred = self._logs - mean_logs(shapes)
        weights = self._weights(shapes)
        return np.tensordot(weights, centred, axes=1) / self._num_episodes

    def hessian(self, shapes: np.ndarray) -> np.ndarray:
        weights = self._weights(shapes)
        centred = (self._logs - mean_logs(shapes)).reshape(len(weights), shapes.size)
        spread = (centred.T * weights) @ centred
        spread -= np.sum(weights) * divergence_hessian(shapes)
        return spread / self._num_episodes

    def _weights(self, shapes: np.ndarray) -> np.ndarray:
        scale = np.sum(betaln(*shapes) - betaln(*self._old))
        logs = np.tensordot(self._logs, shapes - self._old, axes=2) - scale
        # A trial point of the solver may be absurd, but not infinite.
        return np.exp(np.minimum(logs, 500.0))


def update(
    old: np.ndarray,
    levels: np.ndarray,
    success: np.ndarray,
    *,
    min_success: float,
    max_step: float,
) -> Update:
    """Return the distribution that follows from a phase's episodes.

    Where the old one succeeds often enough, the widest within reach that does; else the
    most successful within reach, and from there the widest if that one does. What the
    solver returns counts only if it keeps both bounds and is better than what it started
    from.

    Args:
        old: [2, d] shapes that the episodes' levels were drawn from.
        levels: [n, d] level of every episode in every dimension.
        success: [n] whether it succeeded, 0 or 1.
        min_success: Least share of successes.
        max_step: Largest KL divergence of the old distribution from the new one.
    """
    if not len(levels):
        return Update("kept", old, 0.0, 0.0)
    expected = Success(old, levels, success)
    best = Update("kept", old, expected(old), 0.0)
    near = Term(
        lambda new: divergence(old, new),
        lambda new: divergence_gradient(old, new),
        divergence_hessian,
        high=max_step * (1.0 - MARGIN),
    )
    if 0.0 < best.success < min_success:
        failure = Term(
            lambda s: -expected(s),
            lambda s: -expected.gradient(s),
            lambda s: -expected.hessian(s),
        )
        found = minimise(failure, best.shapes, near)
        step = divergence(old, found)
        if step <= max_step and expected(found) > best.success:
            best = Update("moved to success", found, expected(found), step)
    if best.success < min_success:
        return best
    narrowness = Term(
        lambda s: -entropy(s),
        lambda s: -entropy_gradient(s),
        lambda s: -entropy_hessian(s),
    )
    succeeds = Term(expected, expected.gradient, expected.hessian, low=min_success)
    found = minimise(narrowness, best.shapes, near, succeeds)
    widest = Update("widened", found, expected(found), divergence(old, found))
    feasible = widest.success >= min_success - TOLERANCE and widest.step <= max_step
    return widest if feasible and entropy(found) > entropy(best.shapes) else best


@dataclass(frozen=True)
class Term:
    """A function of shapes with its derivatives: a cost, or a constraint within bounds."""

    value: Callable[[np.ndarray], float]
    gradient: Callable[[np.ndarray], np.ndarray]
    """[2, d]"""
    hessian: Callable[[np.ndarray], np.ndarray]
    """[2 d, 2 d]"""
    low: float = -np.inf
    high: float = np.inf


class _Squeezed:
    """A term over all numbers: logarithms of shapes, by a logistic function in bounds."""

    ends = np.log([MIN_SHAPE, MAX_SHAPE])
    width = float(np.ptp(ends))

    def __init__(self, term: Term):
        self.term = term

    @classmethod
    def shapes(cls, x: np.ndarray) -> np.ndarray:
        return np.exp(cls.ends[0] + cls.width * expit(x)).reshape(2, -1)

    @classmethod
    def place(cls, shapes: np.ndarray) -> np.ndarray:
        # At an end itself the slope is 0, and no solver would leave it.
        share = (np.log(shapes.ravel()) - cls.ends[0]) / cls.width
        return logit(np.clip(share, 0.01, 0.99))

    def value(self, x: np.ndarray) -> float:
        return self.term.value(self.shapes(x))

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return self.term.gradient(self.shapes(x)).ravel() * self._slope(x)

    def hessian(self, x: np.ndarray, factor: Sequence[float] = (1.0,)) -> np.ndarray:
        shapes, slope = self.shapes(x), self._slope(x)
        bend = slope * (self.width * expit(x) * expit(-x) + 1.0 - 2.0 * expit(x))
        bent = np.diag(self.term.gradient(shapes).ravel() * bend)
        return factor[0] * (self.term.hessian(shapes) * np.outer(slope, slope) + bent)

    def _slope(self, x: np.ndarray) -> np.ndarray:
        return self.shapes(x).ravel() * self.width * expit(x) * expit(-x)


def minimise(cost: Term, start: np.ndarray, *limits: Term) -> np.ndarray:
    """Return the shapes of least cost within limits, as far as the solver gets.

    It goes far beyond the six digits that are kept. An attempt that ends beyond a limit,
    or at more than it began with, has failed.
    """
    squeezed, constraints = _Squeezed(cost), []
    for term in limits:
        limit = _Squeezed(term)
        constraints.append(
            NonlinearConstraint(
                limit.value,
                term.low,
                term.high,
                jac=limit.gradient,  # pyright: ignore[reportArgumentType]
                hess=limit.hessian,  # pyright: ignore[reportArgumentType]
            )
        )
    found = place = squeezed.place(start)
    options = {"gtol": PRECISION, "xtol": 1e-10, "maxiter": 250}
    for penalty, radius in ATTEMPTS:
        again = {"initial_constr_penalty": penalty, "initial_tr_radius": radius}
        solved = minimize(
            squeezed.value,
            place,
            jac=squeezed.gradient,
            hess=squeezed.hessian,
            method="trust-constr",
            constraints=constraints,
            options=options | again,
        )
        found = solved.x
        gained = squeezed.value(place) - solved.fun
        if solved.constr_violation <= PRECISION and gained >= -PRECISION:
            break
    rounded = [float(f"{shape:.6g}") for shape in squeezed.shapes(found).ravel()]
    return np.reshape(rounded, start.shape)
