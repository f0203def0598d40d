"""Files of others: read only if they are of a size that such a file can have."""

import zipfile
from pathlib import Path

import numpy as np

from horizon_rl.support.errors import InputError

MAX_TEXT = 4 << 20
"""Bytes of a TOML or JSON file that people write."""
MAX_ARRAYS = 1 << 28
"""Bytes of all arrays of a file, unpacked: a megabyte of zeros packs to a kilobyte."""


def read_text(file: Path) -> str:
    """Read a text that somebody wrote.

    Raises:
        InputError: It cannot be read, or is too large to be what it should be.
    """
    try:
        with open(file, "rb") as opened:
            content = opened.read(MAX_TEXT + 1)
        if len(content) > MAX_TEXT:
            raise InputError(f"larger than {MAX_TEXT >> 20} MB")
        return content.decode("utf-8")
    except OSError as error:
        raise InputError(error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise InputError(str(error)) from error


def read_arrays(file: Path) -> dict[str, np.ndarray]:
    """Read the arrays of an .npz file.

    Raises:
        InputError: It is damaged, or would take too much memory.
    """
    try:
        with zipfile.ZipFile(file) as packed:
            size = sum(member.file_size for member in packed.infolist())
        if size > MAX_ARRAYS:
            raise InputError(f"its arrays take {size >> 20} MB")
        with np.load(file, allow_pickle=False) as arrays:
            return dict(arrays)
    except InputError:
        raise
    except Exception as error:  # A zip file can be damaged in many ways.
        raise InputError(str(error) or type(error).__name__) from error
