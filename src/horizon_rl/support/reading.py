"""Files of others: read only if they are of a size that such a file can have."""

import io
import os
import zipfile
from pathlib import Path
from typing import BinaryIO

import numpy as np

from horizon_rl.support.errors import InputError

MAX_TEXT = 4 << 20
"""Bytes of a TOML or JSON file that people write."""
MAX_RECORD = 1 << 26
"""Bytes of a JSON file that a command writes."""
MAX_LINE = 1 << 29
"""Bytes of a line: a journal's has a phase's episodes with some methods."""
MAX_ARRAYS = 1 << 28
"""Bytes of all arrays of a file, unpacked: a megabyte of zeros packs to a kilobyte."""


def open_file(file: Path) -> BinaryIO:
    """Open a file to be read, if it is one: pipes wait, and devices may never end.

    Raises:
        InputError: It is something else.
        OSError: It cannot be opened.
    """
    if file.exists() and not file.is_file():
        raise InputError("not a file")
    return open(file, "rb")


def read_bytes(file: Path, limit: int = MAX_RECORD) -> bytes:
    """Read a file of at most `limit` bytes; raises as `open_file` does."""
    with open_file(file) as opened:
        size = os.fstat(opened.fileno()).st_size
        if size > limit:
            raise InputError(f"larger than {limit >> 20} MB")
        # No more than that: another process may still write.
        return opened.read(size)


def read_lines(opened: BinaryIO) -> tuple[list[bytes], bytes]:
    """Return whole lines, and what follows the last; reads no further than `MAX_LINE`."""
    lines = []
    while (line := opened.readline(MAX_LINE)).endswith(b"\n"):
        lines.append(line[:-1])
    return lines, line


def read_text(file: Path) -> str:
    """Read a text that somebody wrote.

    Raises:
        InputError: It cannot be read, or is too large to be what it should be.
    """
    try:
        with open(file, "rb") as opened:  # A pipe too: `--config <(...)`.
            content = opened.read(MAX_TEXT + 1)
        if len(content) > MAX_TEXT:
            raise InputError(f"larger than {MAX_TEXT >> 20} MB")
        return content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(getattr(error, "strerror", None) or str(error)) from error


def read_arrays(file: Path) -> dict[str, np.ndarray]:
    """Read the arrays of an .npz file.

    Raises:
        InputError: It is damaged, or would take too much memory.
    """
    try:
        content = io.BytesIO(read_bytes(file, MAX_ARRAYS))
        with zipfile.ZipFile(content) as packed:
            size = sum(member.file_size for member in packed.infolist())
        if size > MAX_ARRAYS:
            raise InputError(f"its arrays take {size >> 20} MB")
        with np.load(content, allow_pickle=False) as arrays:
            return dict(arrays)
    except InputError:
        raise
    except Exception as error:  # A zip file can be damaged in many ways.
        raise InputError(str(error) or type(error).__name__) from error
