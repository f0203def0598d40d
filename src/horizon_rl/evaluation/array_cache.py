"""Results on disk by what they depend on, so that nothing is computed twice.

A key is a hash over everything that can change the result, this software included, so
that a result of other inputs or other code is never taken for this one.
"""

import hashlib
import io
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np

from horizon_rl.support.durable import write_file
from horizon_rl.support.errors import InputError
from horizon_rl.support.reading import read_arrays
from horizon_rl.support.records import dumps

ENGINES = (
    *("mujoco", "mjbatch", "mujoco-warp", "warp-lang"),
    *("torch", "numpy", "rsl-rl-lib", "onnxruntime", "scipy"),
)
USERS = ("grid", "show", "viewer", "bench", "cli")
"""Rooms that use evaluations: whatever changes there leaves results as they are. All
others count, so that code which moves to another room is never left out."""


def make_key(**facts: Any) -> str:
    """Hash `facts` and the software that will compute with them."""
    return hashlib.sha256(dumps([facts, software()]).encode()).hexdigest()


@cache
def software() -> dict[str, str]:
    """Name the versions of the engines, and hash this package's own source."""
    digest, root = hashlib.sha256(), Path(str(files("horizon_rl")))
    for file in source_files(root):
        digest.update(file.relative_to(root).as_posix().encode())
        digest.update(file.read_bytes())
    found = dict.fromkeys(ENGINES, "")
    for name in ENGINES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return {**found, "horizon-rl": digest.hexdigest()}


def source_files(root: Path) -> list[Path]:
    """Return the code and tables (.toml) of the package that results can depend on."""
    found = (*root.rglob("*.py"), *root.rglob("*.toml"))
    return sorted(f for f in found if f.relative_to(root).parts[0] not in USERS)


class ArrayCache:
    """Named arrays by key, a file each; None for `folder` keeps nothing."""

    def __init__(self, folder: Path | None):
        self._folder = folder

    def read(self, key: str, names: Iterable[str]) -> dict[str, np.ndarray] | None:
        """Return the arrays kept under `key`; a damaged file counts as none."""
        path = self._path(key)
        if path is None or not path.exists():
            return None
        try:
            arrays = read_arrays(path)
            with suppress(OSError):
                os.utime(path)  # `horizon cache` deletes what is not used.
            return {name: arrays[name] for name in names}
        except (InputError, KeyError) as error:
            warn(f"{path} is damaged and left out: {error}", stacklevel=2)
            return None

    def write(self, key: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep arrays; where that fails, the result at hand is still good."""
        path = self._path(key)
        if path is None:
            return
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **arrays)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, buffer.getvalue())
        except OSError as error:
            warn(f"cannot keep results in {self._folder}: {error}", stacklevel=2)
            self._folder = None

    def _path(self, key: str) -> Path | None:
        return self._folder and self._folder / key[:2] / f"{key[2:]}.npz"
