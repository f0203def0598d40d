"""Worlds on the GPU; on Warp's CPU device where there is no GPU."""

import numpy as np
import pytest
import torch

from horizon_rl.physics import CpuBackend, Pool

wp = pytest.importorskip("warp", reason="needs horizon-rl[gpu]")
pytest.importorskip("mujoco_warp", reason="needs horizon-rl[gpu]")

from horizon_rl.physics.gpu import GpuBackend  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

REPEATABLE = DEVICE == "cpu"
"""On a GPU contacts come in any order, and sums with them."""


def begin_gpu(pool: Pool, num_threads: int = 0, **sizes: int) -> GpuBackend:
    """Put each row of a pool into a world of its own; has the signature of `begin`."""
    backend = GpuBackend(pool.robot, len(pool), DEVICE, **sizes)
    backend.load(pool)
    backend.reset(everyone(pool), torch.arange(len(pool)))
    return backend


def everyone(pool: Pool) -> torch.Tensor:
    return torch.ones(len(pool), dtype=torch.bool)


def trot(pool: Pool, control_steps: int) -> torch.Tensor:
    """Targets that swing the legs in diagonal pairs twice a second, [steps, n, 12]."""
    time = 0.02 * np.arange(control_steps)[:, None]
    angle = 4.0 * np.pi * time + np.array([0.0, np.pi, np.pi, 0.0])
    swing = np.zeros((control_steps, 4, 3))
    swing[:, :, 1] = 0.25 * np.sin(angle)
    swing[:, :, 2] = -0.25 * np.cos(angle)
    return torch.from_numpy(pool.default_pose + swing.reshape(control_steps, 1, 12))


def apart(one: CpuBackend | GpuBackend, other: CpuBackend | GpuBackend) -> dict:
    """How far two backends' worlds are apart: per world, the largest of each."""
    pairs = {
        name: (getattr(one.state, name).cpu(), getattr(other.state, name).cpu())
        for name in ("root_position", "joint_position", "foot_force", "torque")
    }
    return {n: (a - b).abs().max(dim=1).values for n, (a, b) in pairs.items()}
