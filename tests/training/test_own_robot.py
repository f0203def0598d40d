"""Training a robot of one's own, from its MJCF file."""

from pathlib import Path

import pytest
from small_runs import assert_same, create, finish, resume, run_phases, tiny, weights

from horizon_rl.domains import paper_catalogue

FILE = Path(__file__).parents[2] / "examples" / "own_robot.xml"


def test_the_file_s_body_is_trained_and_resumed(tmp_path):
    cfg = tiny(robot=str(FILE))
    runs = [create(cfg, tmp_path / name, paper_catalogue()) for name in ("a", "b")]
    finish(runs[0])
    run_phases(runs[1], 1)
    resumed = resume(tmp_path / "b")
    (robot,) = resumed.worlds.robots
    assert robot.total_mass_kg == pytest.approx(17.84, abs=0.01)
    finish(resumed)
    assert_same(weights(resumed), weights(runs[0]))
