"""The boundary between the task and the engine that simulates it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from horizon_rl.physics.pool import Pool
from horizon_rl.robots import Robot


@dataclass(frozen=True, eq=False)
class WorldState:
    """What the task sees of n worlds: float32 tensors, overwritten by every step.

    Joints are in canonical order, feet FL FR RL RR, quaternions w x y z.
    """

    root_position: torch.Tensor
    """[n, 3] trunk, world frame, m."""
    root_quat: torch.Tensor
    """[n, 4] trunk frame to world frame."""
    linear_velocity: torch.Tensor
    """[n, 3] trunk, world frame, m/s."""
    angular_velocity: torch.Tensor
    """[n, 3] trunk, trunk frame, rad/s."""
    joint_position: torch.Tensor
    """[n, 12] rad."""
    joint_velocity: torch.Tensor
    """[n, 12] rad/s."""
    torque: torch.Tensor
    """[n, 12] torque of the last physics step, N m."""
    foot_force: torch.Tensor
    """[n, 4] normal force of the ground, one physics step old, N."""
    trunk_force: torch.Tensor
    """[n] normal force of the ground on the trunk, one physics step old, N."""
    healthy: torch.Tensor
    """[n] bool: finite, also its targets, not running away, not reset by the engine."""


def allocate_state(num_worlds: int, device: torch.device) -> WorldState:
    """Make the tensors that a backend writes into."""

    sizes = {"root_position": 3, "root_quat": 4, "linear_velocity": 3}
    sizes |= {"angular_velocity": 3, "joint_position": 12, "joint_velocity": 12}
    sizes |= {"torque": 12, "foot_force": 4}
    return WorldState(
        **{k: torch.zeros((num_worlds, d), device=device) for k, d in sizes.items()},
        trunk_force=torch.zeros(num_worlds, device=device),
        healthy=torch.zeros(num_worlds, dtype=torch.bool, device=device),
    )


@dataclass
class Counters:
    """What went wrong in the engine since the backend was made."""

    unhealthy: int = 0
    """Control steps that ended with a world not healthy."""
    overflow: int = 0
    """Control steps in which a world's contacts or constraints did not all fit."""


class Backend(Protocol):
    """n worlds of one topology, stepped together."""

    robot: Robot
    num_worlds: int
    device: torch.device
    state: WorldState

    @property
    def counters(self) -> Counters:
        """What went wrong so far; on a GPU, asking waits for the device."""
        ...

    def load(self, pool: Pool) -> None:
        """Make `pool` the one whose rows worlds take from now on."""

    def reset(self, mask: torch.Tensor, rows: torch.Tensor) -> None:
        """Restart the worlds in `mask` [n], world i as row `rows[i]` of the pool."""

    def step(self, targets: torch.Tensor) -> None:
        """Advance all worlds one control step toward joint angles [n, 12], rad."""

    def push(self, velocity: torch.Tensor) -> None:
        """Add horizontal velocities [n, 2], m/s, to the trunks."""

    def snapshot(self) -> Any:
        """Copy everything that `restore` needs to continue from here exactly."""

    def restore(self, snapshot: Any) -> None:
        """Continue from a snapshot, to the bit."""


@contextmanager
def cores_for_physics(backend: Backend) -> Iterator[None]:
    """Keep torch to one thread while the engine steps worlds on all cores.

    The task's tensors are small, but some of its operations would still fork to all
    cores and wait there for the engine's threads: a step of 256 worlds took 8 ms
    instead of 2 on a busy machine.
    """
    if backend.device.type != "cpu":
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
