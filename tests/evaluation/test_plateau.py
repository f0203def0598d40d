"""Episode length over runs whose lengths are known."""

import numpy as np
import pytest

pytest.importorskip("scipy")

from studied_runs import first, make_run, phase

from horizon_rl.evaluation.studies.plateau import find_length_trends, moving_mean
from horizon_rl.runs.read import RunFiles


def test_moving_mean_looks_back_by_its_width():
    x, y = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 5.0, 1.0])
    assert moving_mean(x, y, 2.0).tolist() == [1.0, 2.0, 4.0, 3.0]
    assert moving_mean(x, y, 0.5).tolist() == y.tolist()


def test_signal_leaves_out_what_ended_before_an_episode_could_last():
    # Iterations of 50 control steps, episodes of 100: the first of a phase is falls.
    def run(late: float) -> RunFiles:
        lengths = [(0.1, 0.8), (0.1, 0.9), (0.1, 0.9), (0.1, 0.9), (None, late)]
        lines = [
            {"phase": k, "env_steps": 200 * (2 * k + i + 1), "episode_length": y}
            for k, pair in enumerate(lengths)
            for i, y in enumerate(pair)
        ]
        return make_run(metrics=tuple(lines))

    trend = find_length_trends(run(0.905)).rollouts
    assert trend is not None and trend.best == pytest.approx(0.905)
    assert trend.late_gain == pytest.approx(0.005) and trend.plateau
    trend = find_length_trends(run(0.95)).rollouts
    assert trend is not None and not trend.plateau


@pytest.mark.parametrize("num_steps", [0, -1, "x", None, 10**18])
def test_signal_survives_a_forged_length_of_iterations(num_steps):
    run = make_run(metrics=({"phase": 0, "env_steps": 200, "episode_length": 0.5},))
    run.context["train"]["learner"] = {"ppo": {"num_steps": num_steps}}
    assert find_length_trends(run).window is None


def test_window_signal_is_what_gate_l_saw():
    run = make_run(first(), phase(60.0), phase(90.0), phase(70.0), phase(99.0))
    trend = find_length_trends(run).window
    assert trend is not None and not trend.plateau
    assert (trend.best, trend.last) == (pytest.approx(0.99), pytest.approx(0.99))
