"""Code that a user names: FILE.py:NAME or MODULE:NAME."""

import hashlib
import importlib
import importlib.util
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from horizon_rl.support.errors import InputError


def find_code(source: str, kind: str, accepted: str) -> Any:
    """Import what FILE.py:NAME or MODULE:NAME names.

    Args:
        source: The name.
        kind: What it should be, for the complaint: "policy".
        accepted: What else would do, for the complaint.
    """
    module, _, attribute = source.rpartition(":")
    if module.endswith(".py"):
        if not Path(module).is_file():
            raise InputError(f"no {kind} '{source}': there is no file {module}")
        loaded = _load_file(Path(module), kind)
    else:
        loaded = _load_module(module)
    if loaded is None:
        raise InputError(
            f"no {kind} '{source}': no module or directory of that name. "
            f"Accepted: {accepted}"
        )
    if not hasattr(loaded, attribute):
        raise InputError(f"no {kind} '{source}': {module} has no '{attribute}'")
    return getattr(loaded, attribute)


def code_digest(source: str) -> str:
    """Return a hash of the file that is named; not of what that file imports."""
    return hashlib.sha256(code_file(source).read_bytes()).hexdigest()


def code_file(source: str) -> Path:
    """Return the file that FILE.py:NAME or MODULE:NAME names; nothing of it runs."""
    module, _, _ = source.rpartition(":")
    place: str | None = module
    if not module.endswith(".py"):
        # As the import below would find it, which would also run what is above it.
        paths, place = [str(Path.cwd()), *sys.path], None
        for part in module.split("."):
            spec = PathFinder.find_spec(part, paths)
            place = spec.origin if spec else None
            paths = list(spec.submodule_search_locations or ()) if spec else []
    if place is None or not Path(place).is_file():
        raise InputError(f"no code '{source}': there is no file {place or module}")
    return Path(place)


def _load_file(path: Path, kind: str) -> Any:
    # Not by its bare name, which may be that of a module in use.
    spec = importlib.util.spec_from_file_location(f"{kind} of {path}", path)
    assert spec and spec.loader
    # As `python FILE.py` would: modules beside the file can be imported.
    sys.path.insert(0, str(path.parent.resolve()))
    loaded = importlib.util.module_from_spec(spec)
    # Dataclasses and pickle look for their module here.
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def _load_module(name: str) -> Any:
    """Import a module; None if there is none of that name."""
    if not all(part.isidentifier() for part in name.split(".")):
        return None
    # As `python -m` would: modules of the working folder can be imported.
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # What the module itself imports is another matter.
        if not f"{name}.".startswith(f"{error.name}."):
            raise
        return None
