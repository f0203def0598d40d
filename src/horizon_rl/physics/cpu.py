"""The reference backend: MuJoCo on all cores, by `mjbatch`, repeatable to the bit."""

from collections.abc import Set
from math import isinf

import mujoco
import numpy as np
import torch
from mjbatch import Batch

from horizon_rl.physics.backend import Counters, allocate_state
from horizon_rl.physics.draft import check_same_structure
from horizon_rl.physics.motors import torque_bounds, with_servos
from horizon_rl.physics.pool import Pool
from horizon_rl.physics.rates import PHYSICS_STEPS
from horizon_rl.robots import Robot
from horizon_rl.robots.scene import silence_engine
from horizon_rl.support.errors import InputError

RUNAWAY = 500.0
"""Velocity, m/s or rad/s, past which a world is not physics any more."""

_W = mujoco.mjtWarning
BAD_NUMBERS = [int(w) for w in (_W.mjWARN_BADQPOS, _W.mjWARN_BADQVEL)]
BAD_NUMBERS += [int(w) for w in (_W.mjWARN_BADQACC, _W.mjWARN_BADCTRL)]
FULL = [int(_W.mjWARN_CONTACTFULL), int(_W.mjWARN_CNSTRFULL)]


class CpuBackend:
    """n worlds on the CPU."""

    def __init__(self, robot: Robot, num_worlds: int, num_threads: int = 0):
        if num_worlds < 1:
            raise InputError(f"{num_worlds} worlds; at least 1 is needed")
        silence_engine()
        self.robot = robot
        self.num_worlds = num_worlds
        self.device = torch.device("cpu")
        self.counters = Counters()
        self._batch = Batch(with_servos(robot.model), num_worlds, num_threads)
        self._fields: dict[str, np.ndarray] = {}
        self.torque_bounds = self._batch.expand("actuator_forcerange")
        """[n, 12, 2] least and largest torque in the last physics step, N m."""
        self._effort = np.ones((num_worlds, 12))
        self._velocity_limit = np.ones((num_worlds, 12))
        bind = self._batch.bind
        self._state = bind("state")
        self._blank = self._state[0].copy()
        self._qpos, self._qvel = bind("qpos"), bind("qvel")
        self._ctrl, self._wrench = bind("ctrl"), bind("xfrc_applied")
        self._warning = bind("warning")
        self._sensors, self._force = bind("sensordata"), bind("actuator_force")
        self._kept = {
            "state": self._state,
            "effort": self._effort,
            "velocity_limit": self._velocity_limit,
            # Forces lag one physics step: no state holds them, yet the task sees them.
            "sensordata": self._sensors,
            "actuator_force": self._force,
            "warning": self._warning,
        }
        self._dofs = _as_slice(robot.dof_adr)
        self._positions = _as_slice(robot.qpos_adr)
        self._sign = torch.from_numpy(robot.joint_sign).float()
        self._offset = torch.from_numpy(robot.joint_offset_rad).float()
        self.state = allocate_state(num_worlds, self.device)

    def load(self, pool: Pool) -> None:
        check_same_structure([self.robot, pool.robot])
        self._vary(pool.fields.keys())
        self._pool = pool

    def reset(self, mask: torch.Tensor, rows: torch.Tensor) -> None:
        ids = np.flatnonzero(mask.numpy())
        if len(ids) == 0:
            return
        pool, row = self._pool, rows.numpy()[ids]
        for name, values in pool.fields.items():
            self._fields[name][ids] = values[row]
        self._effort[ids] = pool.effort[row]
        self._velocity_limit[ids] = pool.velocity_limit[row]
        self._state[ids] = self._blank
        self._qpos[ids] = pool.start_qpos[row]
        self._qvel[ids] = pool.start_qvel[row]
        self._wrench[ids, self.robot.trunk_body_id] = pool.wrench[row]
        self._warning[ids] = 0
        self._sensors[ids] = 0.0
        self._force[ids] = 0.0
        self._read()

    def step(self, targets: torch.Tensor) -> None:
        self._ctrl[:] = targets.numpy() - self.robot.joint_offset_rad
        for _ in range(PHYSICS_STEPS):
            torque_bounds(
                self.robot.joint_sign * self._qvel[:, self._dofs],
                self._effort,
                self._velocity_limit,
                out=self.torque_bounds,
            )
            self._batch.step()
        self._put_back()
        self._read()
        self._count()

    def push(self, velocity: torch.Tensor) -> None:
        self._qvel[:, :2] += velocity.numpy()
        self.state.linear_velocity.copy_(torch.from_numpy(self._qvel[:, :3]))

    def snapshot(self) -> dict[str, np.ndarray]:
        kept = self._kept | self._fields
        return {name: values.copy() for name, values in kept.items()}

    def restore(self, snapshot: dict[str, np.ndarray]) -> None:
        self._vary(snapshot.keys() - self._kept.keys())
        kept = self._kept | self._fields
        for name, values in snapshot.items():
            kept[name][:] = values
        self._read()

    def _vary(self, names: Set[str]) -> None:
        """Let each world have its own values of these model fields, and of no others.

        A world's fields are copied into the model before every physics step, so one that
        no pool changes is left alone.
        """
        for name in names - self._fields.keys():
            self._fields[name] = self._batch.expand(name)
        for name in self._fields.keys() - names:
            self._fields[name][:] = getattr(self.robot.model, name)

    def _put_back(self) -> None:
        """Move robots that have left the ground's period by whole periods: it repeats."""
        period = self.robot.ground.period_m
        if isinf(period):
            return
        place = self._qpos[:, :2]
        far = np.abs(place) > period / 2.0
        if far.any():
            place[far] -= period * np.rint(place[far] / period)

    def _read(self) -> None:
        """Copy the engine's float64 state into the task's float32 tensors."""
        state = self.state
        qpos = torch.from_numpy(self._qpos).float()
        qvel = torch.from_numpy(self._qvel).float()
        sensors = torch.from_numpy(self._sensors).float()
        state.root_position.copy_(qpos[:, :3])
        state.root_quat.copy_(qpos[:, 3:7])
        state.linear_velocity.copy_(qvel[:, :3])
        state.angular_velocity.copy_(qvel[:, 3:6])
        angles, rates = qpos[:, self._positions], qvel[:, self._dofs]
        torch.addcmul(self._offset, self._sign, angles, out=state.joint_position)
        torch.mul(self._sign, rates, out=state.joint_velocity)
        state.torque.copy_(torch.from_numpy(self._force))
        state.foot_force.copy_(sensors[:, self.robot.foot_sensor_adr])
        state.trunk_force.copy_(sensors[:, self.robot.trunk_sensor_adr])
        state.healthy.copy_(torch.from_numpy(self._healthy()))

    def _healthy(self) -> np.ndarray:
        # NaN fails the comparison too. Where MuJoCo saw bad numbers it has put the
        # robot back to its zero pose, or its targets to zero: sane to look at, but not
        # what was asked for.
        moving_sanely = np.abs(self._qvel).max(axis=1) < RUNAWAY
        upset = self._warning[:, BAD_NUMBERS, 1].any(axis=1)
        return moving_sanely & ~upset & np.isfinite(self._qpos).all(axis=1)

    def _count(self) -> None:
        self.counters.unhealthy += self.num_worlds - int(self.state.healthy.sum())
        full = self._warning[:, FULL, 1].any(axis=1)
        if full.any():
            self.counters.overflow += int(full.sum())
            # Else one overflow would count in every later step of its episode.
            self._warning[:, FULL] = 0


def _as_slice(adr: np.ndarray) -> slice | np.ndarray:
    """Turn consecutive addresses into a slice: a view costs less than a copy."""
    first = int(adr[0])
    consecutive = np.array_equal(adr, np.arange(first, first + len(adr)))
    return slice(first, first + len(adr)) if consecutive else adr
