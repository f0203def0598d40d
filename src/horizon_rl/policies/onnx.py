"""ONNX files as policies: ours, and those of stacks that export alike."""

import json
from typing import Any

import numpy as np
import onnxruntime as ort
import torch
from tensordict import TensorDict

from horizon_rl.policies.export import METADATA
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import decode
from horizon_rl.task import NUM_ACTOR

TYPES = {
    "tensor(float)": np.float32,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}


class OnnxPolicy:
    """Runs a file whose first input is the observation, whose first output the action.

    Other inputs are memory: input `x` is zero when an episode begins and then what the
    output `next_x` said; `x_in` and `x_out` are understood too. A file for one robot is
    run once per world, a file with a free first dimension once for all of them.
    """

    def __init__(self, content: bytes):
        options = ort.SessionOptions()
        # One thread: the engine has the cores, and sums come out alike everywhere.
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = ort.InferenceSession(
                content, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # Its exceptions have no common base.
            raise InputError(f"not a usable ONNX file: {error}") from error
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        if not inputs or not outputs:
            raise InputError("it has no input or no output")
        self._obs_name, self._outputs = inputs[0].name, [o.name for o in outputs]
        _check_observation(inputs[0])
        self._one_by_one = inputs[0].shape[0] == 1
        self._memory = {x.name: _output_of(x.name, self._outputs) for x in inputs[1:]}
        # One world's memory: the whole input, or a row of it where worlds share a call.
        skip = 0 if self._one_by_one else 1
        self._blank = {
            x.name: np.zeros([_width(d, x.name) for d in x.shape[skip:]], _type(x.type))
            for x in inputs[1:]
        }
        self._state: dict[str, np.ndarray] | None = None
        texts = self._session.get_modelmeta().custom_metadata_map
        self.action_scale = _action_scale(texts) if METADATA in texts else None
        """What `horizon export` says of the action's scale; None for other files."""

    def reset(self, mask: torch.Tensor) -> None:
        """Forget the past of the worlds in `mask` [n]."""
        if self._state is None or any(
            len(x) != len(mask) for x in self._state.values()
        ):
            n = len(mask)
            self._state = {k: np.stack([x] * n) for k, x in self._blank.items()}
            return
        for name, values in self._state.items():
            values[mask.cpu().numpy()] = self._blank[name]

    def act(self, observations: TensorDict) -> torch.Tensor:
        """Return actions [n, 12]."""
        actor = observations["actor"]
        obs, n = actor.cpu().numpy(), len(actor)
        if self._state is None:
            self.reset(torch.ones(n, dtype=torch.bool))
        if self._one_by_one:
            actions = np.concatenate([self._run(obs[i : i + 1], i) for i in range(n)])
        else:
            actions = self._run(obs, slice(None))
        return torch.from_numpy(actions).to(actor.device)

    def _run(self, obs: np.ndarray, worlds: int | slice) -> np.ndarray:
        assert self._state is not None
        memory = {name: values[worlds] for name, values in self._state.items()}
        try:
            found = self._session.run(None, {self._obs_name: obs, **memory})
            results = dict(zip(self._outputs, found, strict=True))
            for name, output in self._memory.items():
                self._state[name][worlds] = results[output]
        except Exception as error:
            raise InputError(f"the ONNX file cannot be run: {error}") from error
        return np.asarray(found[0], dtype=np.float32)


def _action_scale(texts: dict[str, str]) -> float:
    try:
        return decode(float, json.loads(texts[METADATA])["control"]["action_scale"])
    except (ValueError, KeyError, TypeError, InputError) as error:
        raise InputError(f"its metadata '{METADATA}' is damaged: {error}") from error


def _check_observation(x: Any) -> None:
    """Refuse a first input that is not observations, [1, 45] or [n, 45]."""
    if x.type != "tensor(float)" or len(x.shape) != 2:
        raise InputError(
            f"its first input '{x.name}' is {x.type} of shape {x.shape}; expected: "
            f"observations, tensor(float) of shape [1, {NUM_ACTOR}] or [n, {NUM_ACTOR}]"
        )
    worlds, width = x.shape
    if isinstance(width, int) and width != NUM_ACTOR:
        raise InputError(
            f"its input '{x.name}' takes {width} observations; the task has "
            f"{NUM_ACTOR}: see docs/task.md for their order"
        )
    if isinstance(worlds, int) and worlds != 1:
        raise InputError(
            f"its input '{x.name}' is for {worlds} worlds; accepted: 1, or a free number"
        )


def _output_of(name: str, outputs: list[str]) -> str:
    for output in (f"next_{name}", name.removesuffix("_in") + "_out"):
        if output in outputs:
            return output
    raise InputError(
        f"its input '{name}' has no output 'next_{name}' to be fed from; outputs: "
        f"{', '.join(outputs)}"
    )


def _width(size: int | str | None, name: str) -> int:
    if not isinstance(size, int):
        raise InputError(f"its input '{name}' has a free dimension '{size}'")
    return size


def _type(kind: str) -> type:
    if kind not in TYPES:
        raise InputError(f"an input of type {kind}; accepted: {', '.join(TYPES)}")
    return TYPES[kind]
