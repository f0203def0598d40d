"""Checkpoints: a directory with weights in safetensors and the rest in JSON.

No pickle is ever written or loaded. A checkpoint holds everything that learns, and
enough about its making to go on, to be evaluated, or to be refused with a reason.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from horizon_rl import __version__
from horizon_rl.support.errors import InputError
from horizon_rl.support.reading import read_bytes
from horizon_rl.support.records import decode, dumps, encode, loads

SCHEMA = 1
"""Version of the format; grows when it changes."""

MAX_WEIGHTS = 1 << 30
"""Bytes of the weights file, the optimiser's numbers included."""
WEIGHTS = "weights.safetensors"
RECORD = "checkpoint.json"


@dataclass(frozen=True, kw_only=True)
class CheckpointRecord:
    """All of a checkpoint but its tensors."""

    schema: int = SCHEMA
    version: str = __version__
    """Version of the package that wrote it."""
    weights_sha256: str = ""
    """Checksum of the weights file."""
    numbers: dict[str, float]
    """What learns and is no tensor: learning rate, ..."""
    counters: dict[str, int]
    """iteration, env_steps, phase, ranks"""
    seed: int
    config: dict[str, Any]
    """The run's whole configuration."""
    catalogue: dict[str, Any]
    """The catalogue it was trained with."""
    levels: dict[str, float]
    """Level of every group that it was trained at."""


class Checkpoint(NamedTuple):
    """A checkpoint in memory."""

    tensors: dict[str, torch.Tensor]
    record: CheckpointRecord


def fill_checkpoint(
    folder: Path, tensors: Mapping[str, torch.Tensor], record: CheckpointRecord
) -> None:
    """Write a checkpoint's files into an empty folder."""
    weights = save({name: t.detach().cpu().contiguous() for name, t in tensors.items()})
    if len(weights) > MAX_WEIGHTS:
        raise InputError(f"weights of {len(weights) >> 20} MB: take smaller networks")
    fields = {**encode(record), "weights_sha256": hashlib.sha256(weights).hexdigest()}
    (folder / WEIGHTS).write_bytes(weights)
    (folder / RECORD).write_text(dumps(fields))


def load_checkpoint(path: Path) -> Checkpoint:
    """Read and verify a checkpoint; a bad one is refused with file and cause."""
    file = record = path / RECORD
    weights = path / WEIGHTS
    try:
        data = loads(read_bytes(record))
        content = read_bytes(file := weights, MAX_WEIGHTS)
    except OSError as error:
        raise InputError(
            f"cannot read {error.filename}: {error.strerror}. A checkpoint is a "
            f"directory with {WEIGHTS} and {RECORD}"
        ) from error
    except InputError as error:
        raise InputError(f"{file} is damaged: {error}") from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if isinstance(schema, int) and schema > SCHEMA:
        raise InputError(
            f"{record}: schema {schema}, written by horizon-rl {data.get('version')}; this "
            f"version ({__version__}) reads up to schema {SCHEMA}: upgrade horizon-rl"
        )
    try:
        found = decode(CheckpointRecord, data)
    except InputError as error:
        raise InputError(f"{record} is damaged: {error}") from error
    if hashlib.sha256(content).hexdigest() != found.weights_sha256:
        raise InputError(f"{weights} is damaged: its checksum is not the recorded one")
    try:
        return Checkpoint(load(content), found)
    except SafetensorError as error:
        raise InputError(f"{weights} is not a safetensors file: {error}") from error
