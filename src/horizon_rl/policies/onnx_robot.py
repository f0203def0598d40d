"""A file's content at work: one robot, as on the robot."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime as ort

from horizon_rl.policies.export import OUTPUTS


class OnnxRobot:
    """Acts for one robot; its memory is carried from step to step."""

    def __init__(self, content: bytes):
        options = ort.SessionOptions()
        # A robot's other cores have other work, and one is enough.
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        self._session = ort.InferenceSession(
            content, options, providers=["CPUExecutionProvider"]
        )
        self.inputs = _shapes(self._session.get_inputs())
        self.outputs = _shapes(self._session.get_outputs())
        self._cache = np.zeros(self.inputs["cache"], np.float32)
        self.reset()

    def reset(self) -> None:
        """Begin an episode; what the cache holds is not looked at."""
        self._valid = np.zeros(self.inputs["valid"], np.int64)

    def act(self, obs: np.ndarray) -> np.ndarray:
        """Return the action [1, 12] for `obs` [1, 45]."""
        memory = {"cache": self._cache, "valid": self._valid}
        action, self._cache, self._valid = self._session.run(
            OUTPUTS, {"obs": obs, **memory}
        )
        return np.asarray(action)


def _shapes(values: Sequence[Any]) -> dict[str, tuple[int, ...]]:
    return {value.name: tuple(value.shape) for value in values}
