"""The example on the user page runs."""

import re
from pathlib import Path

import torch

PAGE = Path(__file__).parents[2] / "docs" / "learning.md"


def test_learning_example_in_the_docs_runs():
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    world: dict = {}
    exec(code, world)
    assert set(world["figures"]) >= {"surrogate", "kl", "std", "clip_fraction"}
    after, before = world["learner"].actor.state_dict(), world["snapshot"].tensors
    for name, value in after.items():
        assert torch.equal(value, before[f"actor.{name}"])
