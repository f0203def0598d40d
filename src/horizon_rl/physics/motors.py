"""Motors: PD control inside the engine, and the torque that speed leaves."""

import copy
from typing import Literal

import mujoco
import numpy as np

Motors = Literal["scaled", "own"]
"""scaled: gains and limits are parameters, scaled to the body. own: they are the real
robot's, and the group `MOTOR_GROUP` of a catalogue does not apply."""
MOTOR_GROUP = "actuation"

STALL_SHARE = 2.0
"""Torque at which the falling line would meet speed zero, as a share of the effort: at
2 a motor has its full torque up to half its velocity limit."""


def with_servos(model: mujoco.MjModel) -> mujoco.MjModel:
    """Return the model with its torque motors made servos with bounded torque.

    torque = stiffness (target - angle) - damping velocity, computed by the engine in
    every physics step, so that the integrator can treat the damping implicitly: then no
    gain is too high for a light leg and a step of 5 ms.
    """
    model = copy.copy(model)
    model.actuator_biastype[:] = mujoco.mjtBias.mjBIAS_AFFINE
    model.actuator_forcelimited[:] = 1
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    return model


def torque_bounds(
    velocity: np.ndarray,
    effort: np.ndarray,
    velocity_limit: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write the least and largest torque at `velocity` to `out`, [n, 12, 2].

    In the direction of motion the full effort is there up to half the velocity limit
    and falls to none at the limit; against it, braking, it is always there:
    |t| <= effort * clip(2 (1 - v sign(t) / v_max), 0, 1).
    """
    stall = STALL_SHARE * effort
    lost = stall / velocity_limit * velocity
    # Minimum and maximum, since np.clip takes three times as long.
    np.maximum(np.minimum(stall - lost, effort), 0.0, out=out[..., 1])
    np.minimum(np.maximum(-stall - lost, -effort), 0.0, out=out[..., 0])
