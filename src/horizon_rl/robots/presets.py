"""Real quadrupeds by name, from the facts in `presets.toml`."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from horizon_rl.robots.leg import JOINT_KINDS, Leg, Link
from horizon_rl.robots.morphology import Box, Morphology
from horizon_rl.support.errors import InputError, unknown

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
    facts = dict(_facts()[name])
    return Morphology(
        name=name,
        trunk=Link(**facts.pop("trunk")),
        trunk_box=Box(**facts.pop("trunk_box")),
        front=_leg(facts.pop("front")),
        rear=_leg(facts.pop("rear")),
        **facts,
    )


def _leg(facts: dict[str, Any]) -> Leg:
    links: dict[str, Any] = {kind: Link(**facts[kind]) for kind in JOINT_KINDS}
    return Leg(**(facts | links))


@cache
def _facts() -> dict[str, dict[str, Any]]:
    text = files("horizon_rl.robots").joinpath("presets.toml").read_text("utf-8")
    return {name: _frozen(robot) for name, robot in tomllib.loads(text).items()}


def _frozen(value: Any) -> Any:
    """Turn lists into tuples, so that a preset cannot be changed by its users."""
    if isinstance(value, dict):
        return {key: _frozen(item) for key, item in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
