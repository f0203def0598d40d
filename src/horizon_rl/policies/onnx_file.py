"""ONNX files as they lie on a disk: with the weights beside them, and unaltered."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import onnx
from onnx import helper, shape_inference
from onnx.external_data_helper import (
    ExternalDataInfo,
    load_external_data_for_tensor,
    uses_external_data,
)

from horizon_rl.support.errors import InputError

CHECKSUM = "horizon_sha256"
"""Metadata key of an export's checksum: of all bytes but those of this last entry."""

MAX_BYTES = 1 << 28
"""Of a file with all its weights; shipped policies have 2 MB at most."""
MAX_NUMBERS = MAX_BYTES // 4
"""Of all that a graph computes of constants alone: a kilobyte can ask for terabytes."""

Part = TypeVar("Part")


def reason_of(error: Exception) -> str:
    """Say why something failed; some exceptions do not."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    return f"{type(error).__name__} {error}" if len(str(error)) < 10 else str(error)


def seal(content: bytes) -> bytes:
    """Return an ONNX file's content with its own checksum behind it."""
    # A protocol buffer's parts may follow one another: one more entry of metadata.
    entry = onnx.ModelProto()
    entry.metadata_props.add(key=CHECKSUM, value=hashlib.sha256(content).hexdigest())
    return content + entry.SerializeToString()


def check_content(content: bytes, folder: Path | None) -> bytes:
    """Return content that needs no other file; what was altered is refused.

    Left alone, the runtime would take weights that the file names from the working
    folder, wherever the file is.

    Args:
        content: An ONNX file's.
        folder: Where weights may lie that it names; None: nowhere.
    """
    if len(content) > MAX_BYTES:
        raise InputError(f"larger than {MAX_BYTES >> 20} MB")
    try:
        model = onnx.load_model_from_string(content)
    except Exception as error:  # A class of protobuf's, whichever it is built on.
        raise InputError(f"not a usable ONNX file: {reason_of(error)}") from error
    if any(entry.key == CHECKSUM for entry in model.metadata_props):
        if content != seal(content[: -len(seal(b""))]):
            raise InputError(
                "it was changed after its export: its checksum is not the recorded one. "
                f"Export it again; if the change is yours, remove '{CHECKSUM}' from its "
                "metadata"
            )
    tensors = _find_all(onnx.TensorProto, model)
    outside = [tensor for tensor in tensors if uses_external_data(tensor)]
    num_bytes = len(content)
    for tensor in outside:
        num_bytes += _load_weights(tensor, folder, MAX_BYTES - num_bytes)
    content = model.SerializeToString(deterministic=True) if outside else content
    _check_numbers(model, content)
    return content


def _load_weights(tensor: onnx.TensorProto, folder: Path | None, limit: int) -> int:
    """Read a tensor's numbers from another file; return how many bytes they are."""
    # Of several entries the last counts, for onnx too.
    names = [entry.value for entry in tensor.external_data if entry.key == "location"]
    name = names[-1] if names else ""
    try:
        # A link may lead out of the folder, too.
        path = (folder / name).resolve() if folder else Path(name)
        if not folder or folder.resolve() not in path.parents:
            raise ValueError("they must lie in a file beside it")
        if not path.is_file():
            raise ValueError("there is no such file")
        info = ExternalDataInfo(tensor)
        length = info.length
        if length is None:  # All that is there.
            length = path.stat().st_size - (info.offset or 0)
        kind = helper.tensor_dtype_to_np_dtype(tensor.data_type)
        needed = prod(tensor.dims) * kind.itemsize
        if length > needed:
            raise ValueError(
                f"{length:,} bytes for '{tensor.name}', whose shape needs {needed:,}"
            )
        if length > limit:
            raise ValueError(f"with them it is larger than {MAX_BYTES >> 20} MB")
        load_external_data_for_tensor(tensor, str(folder))
    except Exception as error:  # Of onnx, several and without a common base.
        raise InputError(f"its weights in '{name}': {reason_of(error)}") from error
    return len(tensor.raw_data)


def _check_numbers(model: onnx.ModelProto, content: bytes) -> None:
    """Refuse constants that are small in the file and large in memory.

    Only shapes that follow from the file's constants directly are seen here.
    """
    shapes = [
        (tensor.values.name, tuple(tensor.dims))
        for tensor in _find_all(onnx.SparseTensorProto, model)
    ]
    # What it cannot make sense of is the runtime's to refuse, which says why.
    with suppress(Exception):
        model = shape_inference.infer_shapes(content)
    for graph in _find_all(onnx.GraphProto, model):
        for value in graph.value_info:
            sizes = value.type.tensor_type.shape.dim
            # Worlds, and whatever else is free, once.
            shapes.append((value.name, tuple(d.dim_value or 1 for d in sizes)))
    total = sum(abs(prod(shape)) for _, shape in shapes)
    if total > MAX_NUMBERS:
        name, shape = max(shapes, key=lambda pair: abs(prod(pair[1])))
        raise InputError(
            f"its graph has values of {total:,} numbers, '{name}' of shape "
            f"{list(shape)} the largest; accepted: {MAX_NUMBERS:,} in all"
        )


def _find_all(kind: type[Part], message: Any) -> Iterator[Part]:
    """Find all parts of a kind, wherever they are: in graphs, attributes, functions."""
    for field, value in message.ListFields():
        if field.message_type:
            for part in value if isinstance(value, Iterable) else [value]:
                if isinstance(part, kind):
                    yield part
                yield from _find_all(kind, part)
