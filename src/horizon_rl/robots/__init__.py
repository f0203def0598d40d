"""Quadruped bodies: facts, presets, generator, interventions, MuJoCo models, import.

Facts need numpy only. What builds or draws a model imports MuJoCo when first used.
"""

import os
from typing import TYPE_CHECKING, Any

from horizon_rl.robots.bodies import INTERVENTIONS as INTERVENTIONS
from horizon_rl.robots.bodies import REFERENCE as REFERENCE
from horizon_rl.robots.bodies import intervene as intervene
from horizon_rl.robots.bodies import load_body as load_body
from horizon_rl.robots.bodies import load_preset as load_preset
from horizon_rl.robots.bodies import preset_names as preset_names
from horizon_rl.robots.generator import GeneratorCfg as GeneratorCfg
from horizon_rl.robots.generator import can_stand as can_stand
from horizon_rl.robots.generator import generate as generate
from horizon_rl.robots.leg import Link as Link
from horizon_rl.robots.morphology import JOINT_NAMES as JOINT_NAMES
from horizon_rl.robots.morphology import LEG_NAMES as LEG_NAMES
from horizon_rl.robots.morphology import Morphology as Morphology
from horizon_rl.robots.morphology import Payload as Payload
from horizon_rl.robots.robot import Robot as Robot
from horizon_rl.robots.robot import size_class as size_class
from horizon_rl.support.errors import InputError, install
from horizon_rl.support.lazy import lazy_names

if TYPE_CHECKING:
    from horizon_rl.robots.build import build_robot as build_robot
    from horizon_rl.robots.build import build_spec as build_spec
    from horizon_rl.robots.ground import FLAT as FLAT
    from horizon_rl.robots.ground import Ground as Ground
    from horizon_rl.robots.inspection import inspect_robot as inspect_robot
    from horizon_rl.robots.inspection import outline as outline
    from horizon_rl.robots.mjcf import load_mjcf as load_mjcf
    from horizon_rl.robots.mjcf import load_robot as load_robot
    from horizon_rl.robots.picture import draw_robots as draw_robots
    from horizon_rl.robots.terrain import TERRAIN as TERRAIN

_import, __dir__ = lazy_names(__name__)


def __getattr__(name: str) -> Any:
    if name not in __dir__():
        return _import(name)  # It says that there is no such name.
    try:
        return _import(name)
    except ModuleNotFoundError as error:
        if error.name != "mujoco":
            raise
        raise InputError(f"this needs MuJoCo: {install('train')}") from error
    except (AttributeError, ImportError, RuntimeError) as error:
        # MuJoCo loads the GL backend of that name when it is imported.
        if not (backend := os.environ.get("MUJOCO_GL")):
            raise
        raise InputError(
            f"MuJoCo does not load with MUJOCO_GL={backend} ({error}): unset it, or "
            "install that backend's library (Debian: libegl1 or libosmesa6)"
        ) from error
