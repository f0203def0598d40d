"""What a phase showed: the numbers that the gates judge."""

import math
from dataclasses import dataclass, fields

import numpy as np

from horizon_rl.support.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Measurements of one phase. None is "not measured", and passes no gate.

    A value that is not finite (a diverged policy) counts as not measured.
    """

    length: float | None
    """Mean episode length on the candidate, as a share of the longest possible."""
    tracking_error: float | None
    """Mean tracking error on the candidate, m/s."""
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
    """Tracking error at level 0, m/s; on record only, it shows slow drift."""
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
    aborted: bool = False
    """The phase was cut short because its rollouts had collapsed."""

    def __post_init__(self):
        # Numpy scalars would not survive JSON, and NaN is no measurement.
        counts: dict[str, type] = {"aborted": bool}
        counts |= dict.fromkeys(("episodes", "iterations", "probes", "env_steps"), int)
        for field in fields(self):
            value = getattr(self, field.name)
            if count := counts.get(field.name):
                if not (math.isfinite(value) and value >= 0):
                    raise InputError(f"{field.name} is {value}; accepted: at least 0")
                value = count(value)
            elif value is not None:
                value = float(value) if math.isfinite(value) else None
            object.__setattr__(self, field.name, value)


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

    def __len__(self) -> int:
        return len(self.start)


def select_window(
    episodes: Episodes, *, phase_steps: int, max_length: int, window: int = 500
) -> Episodes:
    """Keep the episodes that gate L may judge: the last `window` fair ones by start.

    An episode is fair if it began in the phase, and early enough to have lasted its
    whole length before the end. Without the second rule a window that closes between
    synchronised timeouts would hold only falls.

    Episodes that began together are taken together, though they be more than `window`:
    they lie in the order in which they ended, so to take some of them, as when all
    worlds start at once, would be to take the longest.
    """
    if window < 1:
        raise InputError(f"window is {window}; accepted: at least 1")
    fair = (episodes.start >= 0) & (episodes.start <= phase_steps - max_length)
    ids = np.flatnonzero(fair)
    ids = ids[np.argsort(episodes.start[ids], kind="stable")]
    if len(ids) > window:
        ids = ids[episodes.start[ids] >= episodes.start[ids[-window]]]
    return Episodes(
        episodes.start[ids], episodes.length[ids], episodes.tracking_error[ids]
    )


def measure(window: Episodes, *, max_length: int) -> tuple[float | None, float | None]:
    """Return (mean length as a share of `max_length`, mean tracking error)."""
    if len(window) == 0:
        return None, None
    length = float(np.mean(window.length, dtype=np.float64)) / max_length
    return length, float(np.mean(window.tracking_error, dtype=np.float64))
