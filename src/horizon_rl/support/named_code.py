"""Code that a user names: FILE.py:NAME or MODULE:NAME."""

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from horizon_rl.support.errors import InputError

_last_digests: dict[str, str] = {}
"""Of the code that this process has hashed, by its source."""


def find_code(source: str, kind: str, accepted: str, digest: str = "") -> Any:
    """Import what FILE.py:NAME or MODULE:NAME names.

    Args:
        source: The name.
        kind: What it should be, for the complaint: "policy".
        accepted: What else would do, for the complaint.
        digest: Hash of the file; anything else does not run. Empty: anything does.
    """
    module, _, attribute = source.rpartition(":")
    if module.endswith(".py"):
        if not Path(module).is_file():
            raise InputError(f"no {kind} '{source}': there is no file {module}")
        loaded = _load_file(Path(module), kind, digest)
    else:
        loaded = _load_module(module, digest)
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
    digest = hashlib.sha256(code_file(source).read_bytes()).hexdigest()
    _last_digests[source] = digest
    return digest


def last_digest(source: str) -> str:
    """Return what `code_digest` last said of a source, empty if nothing yet.

    It is what was compared with a record, and what the user trusts.
    """
    return _last_digests.get(source, "")


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


class _FromSource(SourceFileLoader):
    """Compiles a file as it is: one in `__pycache__` may come of any other code."""

    digest = ""

    def get_code(self, fullname: str) -> CodeType:
        content = self.get_data(self.path)
        # Read once: what was hashed is what runs.
        if self.digest and hashlib.sha256(content).hexdigest() != self.digest:
            raise InputError(
                f"{self.path} was changed after it was checked: start again"
            )
        return self.source_to_code(content, self.path)


class _SourceFinder:
    """Finds a module and the packages that it is in, to be compiled as they are."""

    def __init__(self, module: str, digest: str):
        self.module, self.digest = module, digest

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not f"{self.module}.".startswith(f"{name}."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _FromSource(name, spec.loader.path)
            spec.loader.digest = self.digest if name == self.module else ""
        return spec


def _load_file(path: Path, kind: str, digest: str) -> Any:
    # Not by its bare name, which may be that of a module in use.
    name = f"{kind} of {path}"
    loader = _FromSource(name, str(path.absolute()))
    loader.digest = digest
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec
    # As `python FILE.py` would: modules beside the file can be imported.
    sys.path.insert(0, str(path.parent.resolve()))
    loaded = importlib.util.module_from_spec(spec)
    # Dataclasses and pickle look for their module here.
    sys.modules[spec.name] = loaded
    loader.exec_module(loaded)
    return loaded


def _load_module(name: str, digest: str) -> Any:
    """Import a module; None if there is none of that name."""
    if not all(part.isidentifier() for part in name.split(".")):
        return None
    # As `python -m` would: modules of the working folder can be imported.
    sys.path.insert(0, str(Path.cwd()))
    importlib.invalidate_caches()
    finder = _SourceFinder(name, digest)
    # Behind those of Python's own modules, whose names others cannot take.
    sys.meta_path.insert(sys.meta_path.index(PathFinder), finder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # What the module itself imports is another matter.
        if not f"{name}.".startswith(f"{error.name}."):
            raise
        return None
    finally:
        sys.meta_path.remove(finder)
