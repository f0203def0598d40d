"""The core drops into any stack: it must not drag one in."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "mujoco", "warp", "mjbatch", "rsl_rl", "matplotlib", "rich", "tyro")


@pytest.mark.parametrize("part", ["domains", "curriculum", "rehearsal"])
def test_core_imports_neither_simulator_nor_learner_nor_terminal(part):
    code = f"import sys, horizon_rl.{part}; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "numpy" in loaded
    assert not loaded & set(HEAVY)


def test_curriculum_does_not_need_domains():
    # It deals in names and levels: other stacks keep their own parameters.
    code = "import sys, horizon_rl.curriculum; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "horizon_rl.domains" not in run.stdout.split()
