"""What the worlds' scenarios say, gathered so that a reset is one copy."""

import numpy as np
import torch

from horizon_rl.robots import REFERENCE, load_preset
from horizon_rl.task.scenarios import Scenarios


class WorldTable:
    """n worlds' scenarios as tensors: every attribute follows the worlds' rows."""

    default_pose: torch.Tensor
    """[n, 12] rad"""
    patch: torch.Tensor
    """[n] which patch of the ground"""
    standing_height: torch.Tensor
    """[n] m"""
    mass: torch.Tensor
    """[n] the body's own, kg"""
    torque_unit: torch.Tensor
    """[n] m L relative to the reference body"""
    length_unit: torch.Tensor
    """[n] leg length relative to the reference body"""
    privileged: torch.Tensor
    """[n, ...] body and parameters, on a fixed scale"""
    commands: torch.Tensor
    """[n, num_commands, 3]"""
    push_velocity: torch.Tensor
    """[n, pushes, 2] m/s"""
    push_steps: torch.Tensor
    """[n, pushes]"""
    signals: dict[str, torch.Tensor]
    """[n, ...] each: what becomes of signals between policy and robot"""

    def __init__(self, scenarios: Scenarios, num_worlds: int, device: torch.device):
        pool = scenarios.pool
        mass, length = pool.body[:, 0], pool.body[:, 1]
        columns = {
            "default_pose": pool.default_pose,
            "patch": pool.patch,
            "standing_height": pool.standing_height,
            "mass": mass * load_preset(REFERENCE).body_mass_kg,
            "torque_unit": mass * length,
            "length_unit": length,
            "privileged": np.concatenate((pool.body, pool.parameters), axis=1),
            "commands": scenarios.commands,
            "push_velocity": pool.push_velocity,
            "push_steps": scenarios.push_steps,
        }
        columns |= pool.signals
        self.num_rows = len(scenarios)
        self.ids = torch.from_numpy(scenarios.ids).to(device)
        """[rows] the scenarios' own ids; apart, since a float cannot hold them."""
        flat = [values.reshape(self.num_rows, -1) for values in columns.values()]
        table = np.concatenate(flat, axis=1).astype(np.float32)
        self._table = torch.from_numpy(table).to(device)
        self._world = torch.zeros((num_worlds, table.shape[1]), device=device)
        # Every column is a view into one tensor: a reset is one copy for all of them.
        parts = self._world.split([values.shape[1] for values in flat], dim=1)
        self.signals = {}
        for (name, values), part in zip(columns.items(), parts, strict=True):
            view = part.view(num_worlds, *values.shape[1:])
            if name in pool.signals:
                self.signals[name] = view
            else:
                setattr(self, name, view)

    def take(self, mask: torch.Tensor, rows: torch.Tensor) -> None:
        """Give the worlds in `mask` the numbers of their rows."""
        new = torch.where(mask.unsqueeze(1), self._table[rows], self._world)
        self._world.copy_(new)
