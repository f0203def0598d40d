"""Scores of scenarios, for methods that choose instances by what is learnt from them."""

import numpy as np
import torch
from torch import Tensor

from horizon_rl.domains.distribution import TRAINS


class RowScores:
    """Mean value loss of every row of a phase, added up on the device."""

    def __init__(self, trains: np.ndarray, device: torch.device):
        """Score all rows; `trains` [rows] is 1 where the policy also learns from them."""
        self._trains = torch.from_numpy(trains).to(device, torch.float)
        self._sums, self._steps = torch.zeros((2, len(trains)), device=device)
        self._rollout: list[Tensor] = []

    def note(self, rows: Tensor) -> dict[str, Tensor]:
        """Note the rows [n] of a step that begins; return what its extras say of them."""
        self._rollout.append(rows.clone())
        return {TRAINS: self._trains[rows]}

    def add(self, value_losses: Tensor) -> None:
        """Add the value losses [T, n] of the steps noted since the last call."""
        rows = torch.stack(self._rollout).flatten()
        self._sums.index_add_(0, rows, value_losses.flatten())
        self._steps.index_add_(0, rows, torch.ones_like(self._steps[rows]))
        self._rollout.clear()

    def means(self) -> np.ndarray:
        """Read the score of every row; one that was never met has 0."""
        return (self._sums / self._steps.clamp(min=1.0)).cpu().numpy()
