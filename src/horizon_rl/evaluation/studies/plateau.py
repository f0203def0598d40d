"""How long episodes got in training, and whether that still grew."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from horizon_rl.runs.read import NUMBER, RunFiles, find

SMOOTH = 0.05
"""Share of the run over which lengths are averaged."""
LATE = 0.2
"""The last fifth of the run: was there still a gain?"""
MIN_GAIN = 0.01
"""Gain of episode length that counts, as a share of the longest episode."""


@dataclass(frozen=True, kw_only=True)
class LengthTrend:
    """Episode length over a run, in the ranges it trained in at the time."""

    best: float
    """Best moving mean, as a share of the longest episode."""
    last: float
    """The moving mean at the end."""
    late_gain: float
    """Best of the last fifth minus best before it."""
    plateau: bool
    """No gain in the last fifth."""


@dataclass(frozen=True, kw_only=True)
class LengthTrends:
    """The trend as training shows it, and as gate L sees it; None where not on file."""

    rollouts: LengthTrend | None
    """From metrics.jsonl: episodes that ended lately. Worlds start a phase together, so
    what ends within its first episode length is falls only, and is left out; what ends
    just then is survivors only."""
    window: LengthTrend | None
    """From the journal: the episodes that gate L judges, one value a phase. Free of
    both, by its rule on when an episode began."""


def find_length_trends(run: RunFiles) -> LengthTrends:
    """Smooth the run's two records of episode length."""
    evidence = [entry.evidence for entry in run.entries]
    spent = np.cumsum([e.env_steps for e in evidence], dtype=float)
    window = zip(spent, (e.length for e in evidence), strict=True)
    return LengthTrends(rollouts=_smooth(_rollout_lengths(run)), window=_smooth(window))


def _rollout_lengths(run: RunFiles) -> Iterator[tuple[int | None, float | None]]:
    """Yield env steps and episode length of all iterations but a phase's first ones."""
    steps = find(run.context, int, "train", "learner", "ppo", "num_steps")
    wait = ceil((run.longest or 0) / max(1, steps or 1))
    done: Counter[Any] = Counter()
    for line in run.metrics:
        done[line.get("phase")] += 1
        if done[line.get("phase")] >= wait:
            yield find(line, int, "env_steps"), find(line, NUMBER, "episode_length")


def _smooth(points: Iterable[tuple[float | None, float | None]]) -> LengthTrend | None:
    """Average over the last part of the run at every point; None for too few points."""
    known = [pair for pair in points if None not in pair]
    pairs = np.array(known, dtype=float).reshape(-1, 2)
    steps, lengths = pairs[np.isfinite(pairs).all(axis=1)].T
    end = steps[-1] if len(steps) else 0.0
    late, whole = steps > (1.0 - LATE) * end, steps >= SMOOTH * end
    if len(steps) < 2 or not np.any(whole & ~late):
        return None
    smooth = moving_mean(steps, lengths, SMOOTH * end)
    gain = float(smooth[late].max() - smooth[whole & ~late].max())
    return LengthTrend(
        best=float(smooth[whole].max()),
        last=float(smooth[-1]),
        late_gain=gain,
        plateau=gain < MIN_GAIN,
    )


def moving_mean(x: np.ndarray, y: np.ndarray, width: float) -> np.ndarray:
    """Return the mean of `y` over (x - width, x] at every point; `x` rises."""
    first = np.minimum(np.searchsorted(x, x - width, side="right"), np.arange(len(x)))
    sums = np.concatenate([[0.0], np.cumsum(y)])
    return (sums[1:] - sums[first]) / (np.arange(1, len(x) + 1) - first)
