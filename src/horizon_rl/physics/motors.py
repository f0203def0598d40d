"""Motors: PD control inside the engine, and the torque that speed leaves."""
# MuJoCo's extension modules carry no type stubs.
# pyright: reportAttributeAccessIssue=false

import copy

import mujoco
import numpy as np

STALL_SHARE = 2.0
"""Torque at which the falling line would meet speed zero, as a share of the effort: at
2 a motor has its full torque up to half its velocity limit."""


def with_servos(model: mujoco.MjModel) -> mujoco.MjModel:
    """Return the model with its torque motors made servos with bounded torque.

    torque = stiffness (target - angle) - damping velocity, computed by the engine in
    every physics step, so that the integrator can treat the damping implicitly: an
    explicit step at 4 N m s/rad would overshoot on a light calf.
    """
    model = copy.copy(model)
    model.actuator_biastype[:] = mujoco.mjtBias.mjBIAS_AFFINE
    model.actuator_forcelimited[:] = 1
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    # Caps that hard steps need and easy ones never reach. Over the full limit ranges a
    # joint jumped to hundreds of rad/s, for want of convergence, in 13 of 2000 worlds
    # within 2 s with 6 Newton iterations of 8 line-search steps, and in one of 20,000
    # with 6 of 50. No cost could be measured.
    model.opt.iterations = 20
    model.opt.ls_iterations = 50
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
