"""Quadruped bodies: facts, presets, generator, interventions, MuJoCo models, import.

Facts need numpy only. What builds or draws a model imports MuJoCo when first used.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from horizon_rl.robots.generator import GeneratorCfg, can_stand, generate
from horizon_rl.robots.interventions import INTERVENTIONS, intervene, load_body
from horizon_rl.robots.leg import JOINT_KINDS, Leg, Link
from horizon_rl.robots.morphology import (
    JOINT_NAMES,
    LEG_NAMES,
    Box,
    Morphology,
    Payload,
)
from horizon_rl.robots.presets import REFERENCE, load_preset, preset_names
from horizon_rl.robots.robot import Robot
from horizon_rl.robots.stance import Stance
from horizon_rl.support.errors import InputError

if TYPE_CHECKING:
    from horizon_rl.robots.build import build_robot, build_spec
    from horizon_rl.robots.load import load_robot
    from horizon_rl.robots.mjcf import load_mjcf
    from horizon_rl.robots.picture import draw_robots

__all__ = [
    "INTERVENTIONS",
    "JOINT_KINDS",
    "JOINT_NAMES",
    "LEG_NAMES",
    "REFERENCE",
    "Box",
    "GeneratorCfg",
    "Leg",
    "Link",
    "Morphology",
    "Payload",
    "Robot",
    "Stance",
    "build_robot",
    "build_spec",
    "can_stand",
    "draw_robots",
    "generate",
    "intervene",
    "load_body",
    "load_mjcf",
    "load_preset",
    "load_robot",
    "preset_names",
]

_NEEDS_MUJOCO = {
    "build_robot": "build",
    "build_spec": "build",
    "draw_robots": "picture",
    "load_mjcf": "mjcf",
    "load_robot": "load",
}


def __getattr__(name: str) -> Any:
    if name not in _NEEDS_MUJOCO:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    try:
        module = import_module(f"{__name__}.{_NEEDS_MUJOCO[name]}")
    except ModuleNotFoundError as error:
        if error.name != "mujoco":
            raise
        raise InputError(
            "building a robot needs MuJoCo: pip install 'horizon-rl[train]'"
        ) from error
    except (AttributeError, ImportError, RuntimeError) as error:
        # MuJoCo loads the GL backend of that name when it is imported.
        if not (backend := os.environ.get("MUJOCO_GL")):
            raise
        raise InputError(
            f"MuJoCo does not load with MUJOCO_GL={backend} ({error}): unset it, or "
            "install that backend's library (Debian: libegl1 or libosmesa6)"
        ) from error
    return getattr(module, name)
