"""Results on disk by what they depend on, so that nothing is computed twice.

A key is a hash over everything that can change the result, this software included, so
that a result of other inputs or other code is never taken for this one.
"""

import ast
import hashlib
import io
import os
import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np

from horizon_rl.support.durable import write_file
from horizon_rl.support.records import dumps

ENGINES = (
    *("mujoco", "mjbatch", "mujoco-warp", "warp-lang"),
    *("torch", "numpy", "rsl-rl-lib", "onnxruntime", "scipy"),
)
COMPUTED_BY = ("horizon_rl.evaluation.evaluate", "horizon_rl.evaluation.statics")
"""Modules whose results are kept."""


def default_folder() -> Path:
    """Return where results are kept: HORIZON_CACHE, else the user's cache folder."""
    if folder := os.environ.get("HORIZON_CACHE"):
        return Path(folder)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
    else:
        base = os.environ.get("XDG_CACHE_HOME")
    return Path(base or Path.home() / ".cache") / "horizon-rl"


def make_key(**facts: Any) -> str:
    """Hash `facts` and the software that will compute with them."""
    return hashlib.sha256(dumps([facts, software()]).encode()).hexdigest()


@cache
def software() -> dict[str, str]:
    """Name the versions of the engines, and hash this package's own source."""
    digest, root = hashlib.sha256(), _package_folder()
    for file in sorted(source_files(COMPUTED_BY)):
        digest.update(file.relative_to(root).as_posix().encode())
        digest.update(file.read_bytes())
    found = {name: _version(name) for name in ENGINES}
    return {**found, "horizon-rl": digest.hexdigest()}


def source_files(modules: Iterable[str]) -> set[Path]:
    """Return the files of this package that `modules` may run, themselves included.

    Imports count wherever they are: in functions, for type checkers only, and modules
    that a text names, since code may import them later. Tables (.toml) count with the
    package they lie in.
    """
    root, todo, found = _package_folder(), set(modules), set[Path]()
    while todo:
        # A function's name leads to no file, but its module is among the parents.
        *parents, name = todo.pop().split(".")
        folder = root.parent.joinpath(*parents)
        for file in {folder / f"{name}.py", folder / name / "__init__.py"} - found:
            if file.exists():
                found.add(file)
                todo |= _named_modules(file)
                if file.stem == "__init__" and name != root.name:
                    found.update(file.parent.rglob("*.toml"))
        if parents:
            todo.add(".".join(parents))
    return found


def _named_modules(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        match node:
            case ast.ImportFrom(module=str(module)):
                names |= {f"{module}.{alias.name}" for alias in node.names}
            case ast.Import():
                names |= {alias.name for alias in node.names}
            case ast.Constant(value=str(text)):  # As in "package.module:Class".
                names.add(text.partition(":")[0])
    return {name for name in names if re.fullmatch(r"horizon_rl(\.\w+)+", name)}


def _package_folder() -> Path:
    return Path(str(files("horizon_rl")))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


class ArrayCache:
    """Named arrays by key, a file each; None for `folder` keeps nothing."""

    def __init__(self, folder: Path | None):
        self._folder = folder

    def read(self, key: str, names: Iterable[str]) -> dict[str, np.ndarray] | None:
        """Return the arrays kept under `key`; a damaged file counts as none."""
        if self._folder is None:
            return None
        try:
            with np.load(self._path(key), allow_pickle=False) as arrays:
                return {name: arrays[name] for name in names}
        except (FileNotFoundError, NotADirectoryError):
            return None
        except Exception as error:  # A zip file can be damaged in many ways.
            warn(f"{self._path(key)} is damaged and left out: {error}", stacklevel=2)
            return None

    def write(self, key: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep arrays; where that fails, the result at hand is still good."""
        if self._folder is None:
            return
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **arrays)
        try:
            self._path(key).parent.mkdir(parents=True, exist_ok=True)
            write_file(self._path(key), buffer.getvalue())
        except OSError as error:
            warn(f"cannot keep results in {self._folder}: {error}", stacklevel=2)
            self._folder = None

    def _path(self, key: str) -> Path:
        assert self._folder is not None
        return self._folder / key[:2] / f"{key[2:]}.npz"
