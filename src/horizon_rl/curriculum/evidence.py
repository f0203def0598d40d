"""What a phase showed: the numbers that the gates judge."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace

import numpy as np

from horizon_rl.support.errors import InputError

AS_SHARE = "0..1, a share of the longest episode, not control steps"
NEAR = 5e-7
"""By so much a share, or a mean of shares, may lie beyond its end by rounding."""
COLUMNS = {
    "row": (int, -1.0, np.inf, "whole numbers, or -1 where it is not known"),
    "length": (float, 0.0, 1.0, AS_SHARE),
    "tracking_error": (float, 0.0, np.inf, "numbers from 0 on"),
    "returns": (float, -np.inf, np.inf, ""),
    "values": (float, -np.inf, np.inf, ""),
    "world": (int, 0.0, np.inf, "whole numbers from 0 on"),
}
"""Of `Outcomes`: type, least, most, and what is accepted in words."""
FAILURE = {"length": 0.0, "tracking_error": 1e6, "returns": 0.0}
"""What an episode counts as in which one of these is not finite: physics broke. The error
is beyond any limit, and sums of it stay finite."""


@dataclass(frozen=True, kw_only=True)
class Outcomes:
    """A phase's fair episodes one by one: where each took place, and how it went.

    An episode whose length, error or return is not finite is a failure. Without finite
    `values` nobody knows what it is of, and it is left out.
    """

    row: tuple[int, ...]
    """Row of the scenario among those of the phase."""
    length: tuple[float, ...]
    """Episode length as a share of the longest possible."""
    tracking_error: tuple[float, ...]
    """Time mean of the tracking error, m/s."""
    returns: tuple[float, ...] = ()
    """Sum of rewards, where the worlds know."""
    values: tuple[tuple[float, ...], ...] = ()
    """The instance's values of the method's `outcome_parameters`, every draw of each, on
    the scale on which -1 and 1 are the ends of the limit range; marks as they are."""
    world: tuple[int, ...] = ()
    """The world that it took place in, where the worlds tell."""

    def __post_init__(self):
        columns = dict(self._columns())
        finite = {
            name: np.isfinite(column).all(axis=tuple(range(1, column.ndim)))
            for name, column in columns.items()
        }
        judged, placed = finite.keys() & FAILURE.keys(), finite.keys() - FAILURE.keys()
        failed = ~np.logical_and.reduce([finite[name] for name in judged])
        kept = np.logical_and.reduce([finite[name] for name in placed])
        for name, column in columns.items():
            column[failed] = FAILURE.get(name, column[failed])
            column, (kind, low, high, accepted) = column[kept], COLUMNS[name]
            wrong = (column < low - NEAR) | (column > high + NEAR)
            if kind is int:
                wrong |= column % 1.0 != 0.0
            if wrong.any():
                found = column[wrong].flat[0]
                raise InputError(f"outcomes.{name} is {found:g}; accepted: {accepted}")
            plain = column.astype(kind).tolist()
            plain = map(tuple, plain) if column.ndim > 1 else plain
            object.__setattr__(self, name, tuple(plain))

    def _columns(self) -> Iterator[tuple[str, np.ndarray]]:
        """Return the columns that there are; refuse those that do not fit the first."""
        for each in fields(self):
            given, ndim = getattr(self, each.name), 1 + (each.name == "values")
            try:
                column = np.array(given, float)
            except (TypeError, ValueError):  # No numbers, or ragged.
                column = np.zeros(())
            if each.default == () and column.ndim and not len(column):
                object.__setattr__(self, each.name, ())  # Of an array, too.
                continue
            if column.ndim != ndim or len(column) != len(self.row):
                what = "as many numbers" if ndim > 1 else "a number"
                raise InputError(
                    f"outcomes.{each.name} does not fit the {np.size(self.row)} entries of "
                    f"outcomes.row; accepted: {what} for every episode"
                )
            yield each.name, column

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Measurements of one phase. None is "not measured", and passes no gate.

    A value that is not finite (a diverged policy) counts as not measured.
    """

    length: float | None
    """Mean episode length on the candidate, as a share of the longest possible."""
    tracking_error: float | None
    """Mean tracking error on the candidate, m/s."""
    length_se: float | None = None
    """Standard error of `length`."""
    error_se: float | None = None
    """Standard error of `tracking_error`, m/s."""
    checkpoint_error: float | None = None
    """Tracking error of the current policy on the checkpoint's scenarios, m/s."""
    checkpoint_return: float | None = None
    """Return of the current policy on the checkpoint's scenarios."""
    reference_error: float | None = None
    """Tracking error of the committed policy on the same scenarios, m/s."""
    reference_return: float | None = None
    """Return of the committed policy on the same scenarios."""
    candidate_error: float | None = None
    """Tracking error of the current policy on fresh scenarios of the candidate, m/s: the
    next phases' reference, should it be committed."""
    candidate_return: float | None = None
    """Its return on them."""
    anchor_error: float | None = None
    """Tracking error at level 0, m/s; it shows slow drift, which HORIZON bounds."""
    anchor_return: float | None = None
    """Return at level 0; on record only."""
    episodes: int = 0
    """Episodes behind `length` and `tracking_error`."""
    iterations: int = 0
    """Iterations of training the phase took."""
    probes: int = 0
    """Probes it took: one at its end, and one at every look that gate L passed."""
    env_steps: int = 0
    """Environment steps the phase cost, probes included."""
    unhealthy: int = 0
    """Episodes of training and probes in which the physics broke; they are failures."""
    overflow: int = 0
    """Steps of a world in which its contacts did not all fit the simulator's memory."""
    progress: float | None = None
    """Share of the run's env steps that was spent when it ended, where they have a limit."""
    aborted: bool = False
    """The phase was cut short because its rollouts had collapsed."""
    probed: dict[str, float] = field(default_factory=dict)
    """Means over probe sets that are not among the above, as in `within 0.5_length`; of
    one size of body, as in `checkpoint_error:large`."""
    outcomes: Outcomes | None = None
    """Single episodes, for methods that ask for them."""

    def __post_init__(self):
        # Numpy scalars would not survive JSON, and NaN is no measurement.
        counts: dict[str, type] = {"aborted": bool}
        whole = ("episodes", "iterations", "probes", "env_steps")
        counts |= dict.fromkeys((*whole, "unhealthy", "overflow"), int)
        finite = {k: float(v) for k, v in self.probed.items() if math.isfinite(v)}
        object.__setattr__(self, "probed", finite)
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name in ("probed", "outcomes"):
                continue
            if count := counts.get(each.name):
                if not (math.isfinite(value) and value >= 0):
                    raise InputError(f"{each.name} is {value}; accepted: at least 0")
                value = count(value)
            elif value is not None:
                value = float(value) if math.isfinite(value) else None
            object.__setattr__(self, each.name, value)
        for name, value in (vars(self) | finite).items():
            if value is None:
                continue
            what = name.split(":")[0].rsplit("_")[-1]
            if what == "length" and not -NEAR <= value <= 1.0 + NEAR:
                raise InputError(f"{name} is {value:g}; accepted: {AS_SHARE}")
            if what in ("error", "se") and value < 0.0:
                raise InputError(f"{name} is {value:g}; accepted: numbers from 0 on")


@dataclass(frozen=True)
class Episodes:
    """Finished training episodes of one phase, one row each."""

    start: np.ndarray
    """[n] control step of the phase at which the episode began; negative if it was
    under way, or set to begin in mid-episode, when the phase began."""
    length: np.ndarray
    """[n] control steps it lasted."""
    tracking_error: np.ndarray
    """[n] time mean of the tracking error, m/s."""
    row: np.ndarray | None = None
    """[n] row of the scenario that it ran, where the worlds know."""
    returns: np.ndarray | None = None
    """[n] sum of rewards, where the worlds know."""
    values: np.ndarray | None = None
    """[n, -] values of the parameters that were asked for, see `Outcomes.values`."""
    world: np.ndarray | None = None
    """[n] the world it took place in, where the worlds know."""

    def __len__(self) -> int:
        return len(self.start)

    def take(self, ids: np.ndarray) -> "Episodes":
        """Return some of the episodes."""
        known = {
            name: column for name, column in vars(self).items() if column is not None
        }
        return replace(self, **{name: column[ids] for name, column in known.items()})


@dataclass(frozen=True)
class ProbedEpisodes:
    """Episodes of mean actions on a probe set, one a scenario."""

    length: np.ndarray
    """[n] control steps it lasted."""
    tracking_error: np.ndarray
    """[n] time mean of the tracking error, m/s."""
    returns: np.ndarray
    """[n] sum of rewards."""
    size: np.ndarray | None = None
    """[n] size of the body, a word, where the worlds know."""
    unhealthy: int = 0
    """Episodes in which the physics broke."""
    overflow: int = 0
    """Steps of a world in which its contacts did not all fit the simulator's memory."""


def fair_episodes(episodes: Episodes, *, phase_steps: int, max_length: int) -> Episodes:
    """Keep the episodes that say what the phase is like, in the order of their starts.

    An episode is fair if it began in the phase, and early enough to have lasted its
    whole length before the end. Without the second rule a window that closes between
    synchronised timeouts would hold only falls.
    """
    fair = (episodes.start >= 0) & (episodes.start <= phase_steps - max_length)
    ids = np.flatnonzero(fair)
    return episodes.take(ids[np.argsort(episodes.start[ids], kind="stable")])


def select_window(
    episodes: Episodes, *, phase_steps: int, max_length: int, window: int = 500
) -> Episodes:
    """Keep the episodes that gate L may judge: the last `window` fair ones by start."""
    fair = fair_episodes(episodes, phase_steps=phase_steps, max_length=max_length)
    return last_episodes(fair, window)


def last_episodes(fair: Episodes, window: int) -> Episodes:
    """Keep the last `window` of episodes in the order of their starts.

    Episodes that began together are taken together, even if there are more than
    `window`: they lie in the order in which they ended, so to take some of them, as
    when all worlds start at once, would be to take the longest.
    """
    if window < 1:
        raise InputError(f"window is {window}; accepted: at least 1")
    if len(fair) <= window:
        return fair
    return fair.take(np.flatnonzero(fair.start >= fair.start[-window]))


def measure(window: Episodes, *, max_length: int) -> tuple[float | None, float | None]:
    """Return (mean length as a share of `max_length`, mean tracking error)."""
    if len(window) == 0:
        return None, None
    length = float(np.mean(window.length, dtype=np.float64)) / max_length
    return length, float(np.mean(window.tracking_error, dtype=np.float64))


def standard_error(values: np.ndarray) -> float | None:
    """Return the standard error of a mean; None of fewer than two values."""
    if len(values) < 2:
        return None
    return float(np.std(values, ddof=1, dtype=np.float64)) / len(values) ** 0.5


def split_by_size(name: str, evidence: Evidence) -> dict[str, float]:
    """Return a probe's figure by size of body, where the worlds know."""
    return {
        key.partition(":")[2]: value
        for key, value in evidence.probed.items()
        if key.startswith(f"{name}:")
    }


def outcomes_of(episodes: Episodes, *, max_length: int) -> Outcomes:
    """Return episodes one by one, for a method that learns from each."""

    def plain(values: np.ndarray | None) -> list:
        # Six digits: what comes of physics in single precision has no more.
        return [] if values is None else np.round(values.astype(float), 6).tolist()

    rows = np.full(len(episodes), -1) if episodes.row is None else episodes.row
    return Outcomes(
        row=tuple(rows.tolist()),
        length=tuple(plain(episodes.length / max_length)),
        tracking_error=tuple(plain(episodes.tracking_error)),
        returns=tuple(plain(episodes.returns)),
        values=tuple(map(tuple, plain(episodes.values))),
        world=() if episodes.world is None else tuple(episodes.world.tolist()),
    )
