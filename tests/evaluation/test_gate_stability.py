"""How often other scenarios would overturn gate C."""

import numpy as np
import pytest

pytest.importorskip("scipy")

from studied_runs import N, first, make_run, phase

from horizon_rl.curriculum import (
    CurriculumCfg,
    GateCfg,
    Paper,
)
from horizon_rl.evaluation.studies.gate_stability import measure_gate_stability


def test_policy_never_fails_itself_on_the_same_scenarios():
    found = measure_gate_stability(
        make_run(first(), phase(), phase()), np.random.default_rng(0)
    )
    assert (found.commits, found.scenarios, found.paired) == (3, 64, 0.0)
    # Errors of 0.2 with a deviation of 0.06: means of 64 differ by 5 % of them in
    # about 1 of 6 draws, those of 32 more often.
    assert found.unpaired is not None and found.halves is not None
    assert 0.05 < found.unpaired < found.halves < 0.5


def test_error_slack_lets_a_policy_pass_against_itself():
    method = Paper(cfg=CurriculumCfg(gates=GateCfg(error_slack=0.1, return_margin=0.5)))
    found = measure_gate_stability(
        make_run(first(), phase(), method=method), np.random.default_rng(0)
    )
    assert (found.unpaired, found.halves) == (0.0, 0.0)


def test_close_verdict_is_overturned_more_often_than_a_clear_one():
    def overturned(error_added: np.ndarray) -> float | None:
        arrays = phase()
        arrays["checkpoint_error"] = arrays["checkpoint_error"] + error_added
        found = measure_gate_stability(
            make_run(first(), arrays), np.random.default_rng(0)
        )
        return found.passes_overturned

    # The allowed growth is 0.01. What all scenarios share is no luck.
    uneven = np.random.default_rng(1).permutation(np.linspace(-0.05, 0.065, N))
    assert overturned(np.full(N, 0.004)) == 0.0
    close = overturned(uneven)
    assert close is not None and 0.1 < close < 0.9
