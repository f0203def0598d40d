"""What every simulated robot shares: engine, solver, torque motors, touch sensors."""

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np

from horizon_rl.robots.ground import Ground
from horizon_rl.robots.morphology import LEG_NAMES

TIMESTEP_S = 0.005

FOOT_SENSORS = tuple(f"{leg}_foot_touch" for leg in LEG_NAMES)
TRUNK_SENSOR = "trunk_touch"


def silence_engine() -> None:
    """Keep MuJoCo from writing warnings to the terminal and into MUJOCO_LOG.TXT.

    What goes wrong in a world is in the counters, and what is wrong with a file is
    found by reading it. A handler of the user's own stays.
    """
    if mujoco.get_mju_user_warning() is None:
        mujoco.set_mju_user_warning(lambda message: None)


def set_options(spec: mujoco.MjSpec, ground: Ground) -> None:
    """Choose physics and solver, for robots built here and imported ones alike."""
    option, usual = spec.option, mujoco.MjSpec().option
    for name in dir(usual):
        if not name.startswith("_"):
            setattr(option, name, getattr(usual, name))
    option.timestep = TIMESTEP_S
    option.integrator = mujoco.mjtIntegrator.mjINT_EULER
    option.solver = mujoco.mjtSolver.mjSOL_NEWTON
    # Caps for hard steps; easy ones stop early, Go2 after 2.1 iterations on average.
    # Over the full limit ranges a joint jumped to hundreds of rad/s, without
    # convergence, in 13 of 2000 worlds within 2 s with 6 iterations of 8 line-search
    # steps, and in one of 20,000 with 6 of 50. There the higher caps cost 5 %: 9.5 ms
    # instead of 9.1 per control step of 256 worlds on two cores.
    option.iterations = 20
    option.ls_iterations = 50
    # The pyramidal cone is a fifth faster, but gives 0.71 of the friction on a diagonal
    # and lifts a fast sliding foot: at friction 2 it brakes at 0.65 of mu g.
    option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    option.impratio = 1.0
    # Bounding trees are fixed at compile time: they would go stale in a batch that
    # writes other bodies' geometry into one model. Two geoms need no tree.
    option.disableflags |= mujoco.mjtDisableBit.mjDSBL_MIDPHASE
    # It scales the solver's tolerance. Left to each body, a batch that runs them all
    # in one model would stop iterating elsewhere than the bodies alone. Go2's value.
    spec.stat.meaninertia = 2.6
    if not ground.is_plane:
        # Feet touch several faces of rough ground. The solution is the same to the
        # solver's tolerance; with all groups wide open a step takes 42 instead of 47
        # microseconds on the CPU, the least of three measurements.
        option.jacobian = mujoco.mjtJacobian.mjJAC_SPARSE
        # A robot is one island: there is nothing to part.
        option.disableflags |= mujoco.mjtDisableBit.mjDSBL_ISLAND


def add_motor(spec: mujoco.MjSpec, name: str, joint: str, sign: float = 1.0) -> None:
    """Drive a joint by torque, without limits: the motor model owns those."""
    through, gear = mujoco.mjtTrn.mjTRN_JOINT, [sign, 0.0, 0.0, 0.0, 0.0, 0.0]
    spec.add_actuator(name=name, target=joint, trntype=through, gear=gear)


def add_touch_sensor(
    spec: mujoco.MjSpec,
    body: mujoco.MjsBody,
    name: str,
    pos_m=(0.0, 0.0, 0.0),
    radius_m: float = 2.0,
) -> None:
    """Sum the normal forces on `body` within a sphere; the default takes in all."""
    sphere, size = mujoco.mjtGeom.mjGEOM_SPHERE, [radius_m, 0.0, 0.0]
    body.add_site(name=name, type=sphere, size=size, pos=pos_m, group=5)
    touch, site = mujoco.mjtSensor.mjSENS_TOUCH, mujoco.mjtObj.mjOBJ_SITE
    spec.add_sensor(name=name, type=touch, objtype=site, objname=name)


def find_addresses(
    model: mujoco.MjModel, joints: Sequence[str], feet: Sequence[str]
) -> dict[str, Any]:
    """Say where joints, feet and sensors lie: a robot's fields of these names."""
    return {
        "qpos_adr": np.array([model.joint(name).qposadr[0] for name in joints]),
        "dof_adr": np.array([model.joint(name).dofadr[0] for name in joints]),
        "foot_geom_ids": np.array([model.geom(name).id for name in feet]),
        "foot_sensor_adr": np.array([model.sensor(n).adr[0] for n in FOOT_SENSORS]),
        "trunk_sensor_adr": int(model.sensor(TRUNK_SENSOR).adr[0]),
    }
