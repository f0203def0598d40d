"""Randomness that is never rewound: every phase has a stream of its own."""

import numpy as np


def phase_rng(seed: int, phase: int, rank: int = 0) -> np.random.Generator:
    """Return the generator that all of phase `phase` derives from.

    Of several processes that train together each has its `rank`, and a stream of its
    own; rank 0 has that of a process alone.

    A retry is another phase, so it does not replay the failure; a phase that runs
    again after a crash does repeat itself, to the bit.
    """
    # A spawn key, since SeedSequence([seed, 0]) would equal SeedSequence([seed]).
    key = (phase, rank) if rank else (phase,)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
