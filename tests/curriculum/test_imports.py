"""The core drops into any stack: it must not drag one in."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "mujoco", "warp", "mjbatch", "rsl_rl", "matplotlib", "rich", "tyro")


PARTS = ("domains", "curriculum", "runs.read", "training.loop", "rehearsal")


@pytest.mark.parametrize("part", PARTS)
def test_core_imports_neither_simulator_nor_learner_nor_terminal(part):
    code = f"import sys, horizon_rl.{part}; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "numpy" in loaded
    assert not loaded & set(HEAVY)
