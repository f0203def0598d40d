"""Randomness that is never rewound: every phase has a stream of its own."""

import numpy as np


def phase_rng(seed: int, phase: int) -> np.random.Generator:
    """Return the generator that all of phase `phase` derives from.

    A retry is another phase, so it does not replay the failure; a phase that runs
    again after a crash does repeat itself, to the bit.
    """
    # A spawn key, since SeedSequence([seed, 0]) would equal SeedSequence([seed]).
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(phase,)))
