"""Policies acting on plain arrays."""

import numpy as np
import torch
from tensordict import TensorDict

CPU = torch.device("cpu")


def see(values: np.ndarray) -> TensorDict:
    actor = torch.as_tensor(values, dtype=torch.float32)
    return TensorDict({"actor": actor}, [len(actor)])


def act(policy, values: np.ndarray) -> np.ndarray:
    return policy.act(see(values)).numpy()
