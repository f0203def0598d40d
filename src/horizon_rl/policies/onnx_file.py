"""ONNX files as they lie on a disk: with the weights beside them, and unaltered."""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import onnx
from onnx.external_data_helper import (
    ExternalDataInfo,
    load_external_data_for_tensor,
    uses_external_data,
)

from horizon_rl.support.errors import InputError

CHECKSUM = "horizon_sha256"
"""Metadata key of an export's checksum: of all bytes but those of this last entry."""


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
    try:
        model = onnx.load_model_from_string(content)
    except Exception as error:  # A class of protobuf's, whichever it is built on.
        raise InputError(f"not a usable ONNX file: {error}") from error
    if any(entry.key == CHECKSUM for entry in model.metadata_props):
        if content != seal(content[: -len(seal(b""))]):
            raise InputError(
                "it was changed after its export: its checksum is not the recorded one. "
                f"Export it again; if the change is yours, remove '{CHECKSUM}' from its "
                "metadata"
            )
    outside = [tensor for tensor in _tensors(model) if uses_external_data(tensor)]
    for tensor in outside:
        name = ExternalDataInfo(tensor).location
        try:
            # A link may lead out of the folder, too.
            if not folder or folder.resolve() not in (folder / name).resolve().parents:
                raise ValueError("they must lie in a file beside it")
            load_external_data_for_tensor(tensor, str(folder))
        except Exception as error:  # Of onnx, several and without a common base.
            raise InputError(f"its weights in '{name}': {error}") from error
    return model.SerializeToString(deterministic=True) if outside else content


def _tensors(message: Any) -> Iterator[onnx.TensorProto]:
    """Find all tensors, wherever they are: in graphs, attributes, functions."""
    for field, value in message.ListFields():
        if field.message_type:
            for part in value if isinstance(value, Iterable) else [value]:
                if isinstance(part, onnx.TensorProto):
                    yield part
                else:
                    yield from _tensors(part)
