"""Exports that show as well that a policy can be exported, in a fraction of the time."""

import sys
from functools import cache
from importlib import import_module

import pytest

STEPS = 150
"""Of the check, more than the window of the shipped transformers."""


@pytest.fixture(autouse=True)
def shared_operators() -> None:
    """Let all exports of a process share torch's table of operators.

    It makes one for every export, which takes a second.
    """
    module = sys.modules.get("torch.onnx._internal.exporter._registration")
    if module is not None:
        make = module.ONNXRegistry.from_torchlib
        if not hasattr(make, "cache_info"):
            module.ONNXRegistry.from_torchlib = staticmethod(cache(make))


def shorten(patch: pytest.MonkeyPatch) -> None:
    """Let an export be checked by fewer steps."""
    import_module("horizon_rl.cli.export")  # Before the patch, which it would keep.
    patch.setattr(import_module("horizon_rl.policies.deployment"), "NUM_STEPS", STEPS)


@pytest.fixture
def short_exports(monkeypatch) -> None:
    shorten(monkeypatch)
