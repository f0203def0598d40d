"""ONNX files as policies: ours, and those of stacks that export the same way."""

import math
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import torch
from tensordict import TensorDict

from horizon_rl.policies.onnx_file import MAX_NUMBERS, check_content, reason_of
from horizon_rl.policies.onnx_graph import METADATA
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import decode, loads
from horizon_rl.task import NUM_ACTOR

TYPES = {
    "tensor(float)": np.float32,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}
MAX_MEMORY = 1_000_000
"""Numbers that an input may remember of one robot: it is allocated for every world."""

OnnxMemory = dict[str, np.ndarray]
"""What one call of the file remembers for the next, by the name of its input."""


class OnnxPolicy:
    """Runs a file whose first input is the observation, whose first output the action.

    Other inputs are memory: input `x` is zero when an episode begins and then what the
    output `next_x` said; `x_in` and `x_out` are understood too. A file for one robot is
    run once per world, a file with a free first dimension once for all of them.
    """

    def __init__(self, content: bytes, folder: Path | None = None):
        """Check and load a file's content; `folder` is where its other files may be."""
        self.content = content = check_content(content, folder)
        """All that it runs, weights of other files included."""
        options = ort.SessionOptions()
        # One thread: the engine has the cores, as other programs have those of a robot,
        # and sums come out the same everywhere.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # Nothing, not even errors: the runtime writes names of the file as they are,
        # which a terminal would obey. What it raises is said below.
        options.log_severity_level = 4
        try:
            self._session = ort.InferenceSession(
                content,
                options,
                providers=["CPUExecutionProvider"],
                enable_fallback=0,  # It would print, and try the same again.
            )
        except Exception as error:  # Its exceptions have no common base.
            raise InputError(f"not a usable ONNX file: {reason_of(error)}") from error
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        if not inputs or not outputs:
            raise InputError("it has no input or no output")
        _check_observation(inputs[0])
        self.inputs = {x.name: tuple(x.shape) for x in inputs}
        self.outputs = {x.name: tuple(x.shape) for x in outputs}
        self._obs_name = inputs[0].name
        self._is_for_one = inputs[0].shape[0] == 1
        self._sources = {x.name: _output_of(x.name, self.outputs) for x in inputs[1:]}
        for x in inputs[1:]:
            sizes = x.shape if self._is_for_one else x.shape[1:]
            fixed = all(isinstance(size, int) and size > 0 for size in sizes)
            if x.type not in TYPES or not fixed or math.prod(sizes) > MAX_MEMORY:
                raise InputError(
                    f"its input '{x.name}' is {x.type} of shape {x.shape}; accepted: "
                    f"fixed sizes, {MAX_MEMORY:,} numbers a robot at most, and "
                    f"{', '.join(TYPES)}"
                )
        for x in outputs:
            num = math.prod(size for size in x.shape if isinstance(size, int))
            if num > MAX_NUMBERS:
                raise InputError(
                    f"its output '{x.name}' is of shape {x.shape}; accepted: "
                    f"{MAX_NUMBERS:,} numbers at most"
                )
        self._types = {x.name: TYPES[x.type] for x in inputs[1:]}
        self._num_worlds = 0
        self._memories: list[OnnxMemory] = []
        """One for every call of a step: each world's own, or one for all of them."""
        texts = self._session.get_modelmeta().custom_metadata_map
        self.action_scale = _action_scale(texts) if METADATA in texts else None
        """What `horizon export` says of the action's scale; None for other files."""

    def reset(self, mask: torch.Tensor) -> None:
        """Forget the past of the worlds in `mask` [n]."""
        if len(mask) != self._num_worlds:
            self._num_worlds = n = len(mask)
            calls = n if self._is_for_one else 1
            self._memories = [self.blank(n) for _ in range(calls)]
        elif self._is_for_one:
            for world in mask.nonzero().ravel().tolist():
                self._memories[world] = self.blank(1)
        else:
            for values in self._memories[0].values():
                values[mask.cpu().numpy()] = 0

    def act(self, observations: TensorDict) -> torch.Tensor:
        """Return actions [n, 12]."""
        actor = observations["actor"]
        if len(actor) != self._num_worlds:
            self.reset(torch.ones(len(actor), dtype=torch.bool))
        parts = np.split(actor.cpu().numpy(), len(self._memories))
        calls = zip(parts, self._memories, strict=True)
        actions = np.concatenate([self.step(obs, memory) for obs, memory in calls])
        return torch.from_numpy(actions).to(actor.device)

    def step(self, obs: np.ndarray, memory: OnnxMemory) -> np.ndarray:
        """Call the file once; `memory` then holds what it remembers.

        Args:
            obs: [1, 45], or [n, 45] where the file takes several worlds.
            memory: `blank` at the start of an episode.

        Returns:
            Actions [1, 12] or [n, 12].
        """
        try:
            found = self._session.run(None, {self._obs_name: obs, **memory})
        except Exception as error:
            raise InputError(
                f"the ONNX file cannot be run: {reason_of(error)}"
            ) from error
        results = dict(zip(self.outputs, map(np.asarray, found), strict=True))
        for name, output in self._sources.items():
            memory[name] = results[output].astype(self._types[name], copy=False)
        return np.asarray(found[0], dtype=np.float32)

    def blank(self, num_worlds: int) -> OnnxMemory:
        """Return the memory of a call in which all episodes begin."""
        memory = {}
        for name, kind in self._types.items():
            first, *others = self.inputs[name]
            shape = first if self._is_for_one else num_worlds, *others
            memory[name] = np.zeros(shape, kind)
        return memory


def _action_scale(texts: dict[str, str]) -> float:
    try:
        return decode(float, loads(texts[METADATA])["control"]["action_scale"])
    except (KeyError, TypeError, InputError) as error:
        raise InputError(f"its metadata '{METADATA}' is damaged: {error}") from error


def _check_observation(x: Any) -> None:
    """Refuse a first input that is not observations, [1, 45] or [n, 45]."""
    is_fit = x.type == "tensor(float)" and len(x.shape) == 2
    for size, accepted in zip(x.shape, (1, NUM_ACTOR), strict=False):
        is_fit &= isinstance(size, str | None) or size == accepted
    if not is_fit:
        raise InputError(
            f"its first input '{x.name}' is {x.type} of shape {x.shape}; accepted: "
            f"observations (docs/task.md), tensor(float) of shape [1, {NUM_ACTOR}] or "
            f"[n, {NUM_ACTOR}]"
        )


def _output_of(name: str, outputs: Collection[str]) -> str:
    for output in (f"next_{name}", name.removesuffix("_in") + "_out"):
        if output in outputs:
            return output
    raise InputError(
        f"its input '{name}' has no output 'next_{name}' to be fed from; outputs: "
        f"{', '.join(outputs)}"
    )
