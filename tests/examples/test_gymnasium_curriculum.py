"""The Gymnasium example: it runs on the core alone, leaps, and takes back what failed."""

import subprocess
import sys
from pathlib import Path

import pytest

from waiting import PATIENCE_S

pytest.importorskip("gymnasium")

EXAMPLES = Path(__file__).parents[2] / "examples"

CODE = """
import sys
from gymnasium_curriculum import CATALOGUE, main

entries = main(seed=4, phases=14)
heavy = {"torch", "mujoco", "mjbatch", "rsl_rl"} & sys.modules.keys()
assert not heavy, f"the core needs none of {heavy}"

actions = [entry.decision.action for entry in entries]
assert actions.count("commit") >= 4, actions
assert {"hold", "rollback"} <= {*actions}, actions
kinds = [entry.proposal.kind for entry in entries]
assert kinds.count("leap") >= 4, kinds
# A level that failed is taken back: what follows builds on the checkpoint's.
for entry, after in zip(entries, entries[1:]):
    if entry.decision.action == "rollback":
        assert after.proposal.mastered == entry.proposal.mastered
reached = entries[-1].proposal.mastered
assert min(reached.values()) >= 0.5, reached
print("widest:", CATALOGUE.ranges(reached)["pole.length"])
"""


@pytest.mark.slow
def test_it_widens_physics_and_rolls_back():
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rolled back" in done.stdout and "Mastered:" in done.stdout
