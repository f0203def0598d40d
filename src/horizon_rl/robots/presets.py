"""Real quadrupeds by name, from the facts in `presets.toml`."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from horizon_rl.robots.morphology import Morphology
from horizon_rl.support.errors import InputError, unknown
from horizon_rl.support.records import decode

REFERENCE = "go2"
"""The robot whose motors and ranges every other body's are scaled from."""


def preset_names() -> tuple[str, ...]:
    """Name the robots that `load_preset` knows, the reference first."""
    return tuple(_facts())


@cache
def load_preset(name: str) -> Morphology:
    """Return a real robot's body."""
    if name not in _facts():
        raise InputError(unknown("robot", name, preset_names()))
    return decode(Morphology, {"name": name, **_facts()[name]})


@cache
def _facts() -> dict[str, dict[str, Any]]:
    text = files("horizon_rl.robots").joinpath("presets.toml").read_text("utf-8")
    return tomllib.loads(text)
