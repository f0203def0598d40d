"""Code that a user names: FILE.py:NAME or MODULE:NAME."""

import hashlib
import importlib
import importlib.util
import inspect
import sys
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
    """Return a hash of the file of what was found; not of what that file imports."""
    module, _, _ = source.rpartition(":")
    if not module.endswith(".py"):
        module = inspect.getfile(sys.modules[module])
    return hashlib.sha256(Path(module).read_bytes()).hexdigest()


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
