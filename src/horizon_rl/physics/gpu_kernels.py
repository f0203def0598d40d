"""Warp kernels of the GPU backend: resets, motors, the guard against bad numbers."""
# Kernels are Python in form only: Warp compiles them, checkers cannot follow.
# pyright: reportArgumentType=false, reportAssignmentType=false
# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

import warp as wp
from mujoco_warp import OverflowType

from horizon_rl.physics.cpu import RUNAWAY
from horizon_rl.physics.motors import STALL_SHARE

UNHEALTHY, OVERFLOW = 0, 1
"""Where each count lies in the backend's counters."""

LOST = int(OverflowType.ALL) & ~int(
    OverflowType.ITERATIONS | OverflowType.LS_ITERATIONS
)
"""The engine's flags for contacts or constraints that found no place."""

_STALL_SHARE = wp.constant(STALL_SHARE)
_RUNAWAY = wp.constant(RUNAWAY)
_BAD = wp.constant(1e10)
"""MuJoCo's mjMAXVAL: past it a number is as bad as NaN."""
_LOST = wp.constant(LOST)

wp.set_module_options({"enable_backward": False})


@wp.func
def _is_bad(x: float) -> bool:
    # NaN fails the comparison too.
    return not (wp.abs(x) <= _BAD)


@wp.kernel
def take_rows(
    mask: wp.array[bool],
    rows: wp.array[wp.int64],
    table: wp.array2d[float],
    world: wp.array2d[float],
):
    """Copy row `rows[i]` of the pool's table into world i, where `mask` says so."""
    i, column = wp.tid()
    if mask[i]:
        world[i, column] = table[int(rows[i]), column]


@wp.kernel
def start_worlds(
    mask: wp.array[bool],
    start_qpos: wp.array2d[float],
    start_qvel: wp.array2d[float],
    wrench: wp.array2d[float],
    trunk: int,
    qpos: wp.array2d[float],
    qvel: wp.array2d[float],
    act: wp.array2d[float],
    ctrl: wp.array2d[float],
    qacc: wp.array2d[float],
    qacc_warmstart: wp.array2d[float],
    xfrc_applied: wp.array2d[wp.spatial_vector],
    time: wp.array[float],
    sensordata: wp.array2d[float],
    actuator_force: wp.array2d[float],
    overflow: wp.array[int],
    upset: wp.array[bool],
):
    """Restart worlds with nothing left over: no warm start, force or flag."""
    i = wp.tid()
    if not mask[i]:
        return
    for j in range(qpos.shape[1]):
        qpos[i, j] = start_qpos[i, j]
    for j in range(qvel.shape[1]):
        qvel[i, j] = start_qvel[i, j]
        qacc[i, j] = 0.0
        qacc_warmstart[i, j] = 0.0
    for j in range(act.shape[1]):
        act[i, j] = 0.0
    for j in range(ctrl.shape[1]):
        ctrl[i, j] = 0.0
    for j in range(sensordata.shape[1]):
        sensordata[i, j] = 0.0
    for j in range(actuator_force.shape[1]):
        actuator_force[i, j] = 0.0
    xfrc_applied[i, trunk] = wp.spatial_vector(
        wrench[i, 0],
        wrench[i, 1],
        wrench[i, 2],
        wrench[i, 3],
        wrench[i, 4],
        wrench[i, 5],
    )
    time[i] = 0.0
    overflow[i] = 0
    upset[i] = False


@wp.kernel
def aim(
    targets: wp.array2d[float],
    offset: wp.array[float],
    ctrl: wp.array2d[float],
    upset: wp.array[bool],
):
    """Hand the targets to the servos; where one is bad, all become zero, as MuJoCo's."""
    i = wp.tid()
    bad = bool(False)
    for j in range(targets.shape[1]):
        bad = bad or _is_bad(targets[i, j])
    for j in range(targets.shape[1]):
        ctrl[i, j] = wp.where(bad, 0.0, targets[i, j] - offset[j])
    if bad:
        upset[i] = True


@wp.kernel
def bound_torques(
    qvel: wp.array2d[float],
    dof: wp.array[int],
    sign: wp.array[float],
    effort: wp.array2d[float],
    velocity_limit: wp.array2d[float],
    bounds: wp.array2d[wp.vec2],
):
    """Bound each motor's torque by its speed, as `motors.torque_bounds` does."""
    i, j = wp.tid()
    most = effort[i, j]
    stall = _STALL_SHARE * most
    lost = stall / velocity_limit[i, j] * (sign[j] * qvel[i, dof[j]])
    bounds[i, j] = wp.vec2(
        wp.min(wp.max(-stall - lost, -most), 0.0),
        wp.max(wp.min(stall - lost, most), 0.0),
    )


@wp.kernel
def repair_worlds(
    qpos0: wp.array2d[float],
    qpos: wp.array2d[float],
    qvel: wp.array2d[float],
    qacc: wp.array2d[float],
    qacc_warmstart: wp.array2d[float],
    efc_J: wp.array3d[float],
    efc_D: wp.array2d[float],
    upset: wp.array[bool],
):
    """Put a world with bad numbers into its zero pose, as MuJoCo does, and note it.

    The solver multiplies rows of J that are out of use by zero: a NaN left there would
    outlive the reset.
    """
    i = wp.tid()
    bad = bool(False)
    for j in range(qpos.shape[1]):
        bad = bad or _is_bad(qpos[i, j])
    for j in range(qvel.shape[1]):
        bad = bad or _is_bad(qvel[i, j]) or _is_bad(qacc[i, j])
    if not bad:
        return
    upset[i] = True
    for j in range(qpos.shape[1]):
        qpos[i, j] = qpos0[0, j]
    for j in range(qvel.shape[1]):
        qvel[i, j] = 0.0
        qacc[i, j] = 0.0
        qacc_warmstart[i, j] = 0.0
    for j in range(efc_J.shape[1]):
        for k in range(efc_J.shape[2]):
            efc_J[i, j, k] = 0.0
    for j in range(efc_D.shape[1]):
        efc_D[i, j] = 0.0


@wp.kernel
def put_back(period: float, qpos: wp.array2d[float]):
    """Move robots that have left the ground's period by whole periods: it repeats."""
    i = wp.tid()
    for j in range(2):
        if wp.abs(qpos[i, j]) > 0.5 * period:
            qpos[i, j] = qpos[i, j] - period * wp.rint(qpos[i, j] / period)


@wp.kernel
def read_state(
    qpos: wp.array2d[float],
    qvel: wp.array2d[float],
    actuator_force: wp.array2d[float],
    sensordata: wp.array2d[float],
    upset: wp.array[bool],
    position: wp.array[int],
    dof: wp.array[int],
    sign: wp.array[float],
    offset: wp.array[float],
    foot_sensor: wp.array[int],
    trunk_sensor: int,
    root_position: wp.array2d[float],
    root_quat: wp.array2d[float],
    linear_velocity: wp.array2d[float],
    angular_velocity: wp.array2d[float],
    joint_position: wp.array2d[float],
    joint_velocity: wp.array2d[float],
    torque: wp.array2d[float],
    foot_force: wp.array2d[float],
    trunk_force: wp.array[float],
    healthy: wp.array[bool],
):
    """Copy the engine's state into the task's tensors."""
    i = wp.tid()
    for j in range(3):
        root_position[i, j] = qpos[i, j]
        linear_velocity[i, j] = qvel[i, j]
        angular_velocity[i, j] = qvel[i, 3 + j]
    for j in range(4):
        root_quat[i, j] = qpos[i, 3 + j]
        foot_force[i, j] = sensordata[i, foot_sensor[j]]
    trunk_force[i] = sensordata[i, trunk_sensor]
    for j in range(dof.shape[0]):
        joint_position[i, j] = sign[j] * qpos[i, position[j]] + offset[j]
        joint_velocity[i, j] = sign[j] * qvel[i, dof[j]]
        torque[i, j] = actuator_force[i, j]
    fine = not upset[i]
    for j in range(qvel.shape[1]):
        fine = fine and (wp.abs(qvel[i, j]) < _RUNAWAY)
    for j in range(qpos.shape[1]):
        fine = fine and wp.isfinite(qpos[i, j])
    healthy[i] = fine


@wp.kernel
def count(
    healthy: wp.array[bool],
    overflow: wp.array[int],
    counts: wp.array[wp.int64],
):
    """Add a control step's troubles to the counters, and forget the engine's flags."""
    i = wp.tid()
    if not healthy[i]:
        wp.atomic_add(counts, UNHEALTHY, wp.int64(1))
    if overflow[i] & _LOST != 0:
        wp.atomic_add(counts, OVERFLOW, wp.int64(1))
    overflow[i] = 0
