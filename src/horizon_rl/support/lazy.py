"""Names of a package that are imported when they are first used.

`horizon train --help` must not wait for torch, nor `import horizon_rl` for anything.
"""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package.

    The names are those that its file imports under `if TYPE_CHECKING:`, where type
    checkers and editors find them too. None may be called like a submodule: once that
    is imported, Python would take it for the name.
    """
    module = sys.modules[package]
    names = _read_names(Path(str(module.__file__)))

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        value = getattr(import_module(names[name]), name)
        setattr(module, name, value)
        return value

    return get, lambda: sorted({*vars(module), *names})


def _read_names(file: Path) -> dict[str, str]:
    """Return the modules of the names that are imported for type checkers only."""
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return {
                alias.name: line.module
                for line in node.body
                if isinstance(line, ast.ImportFrom) and line.module
                for alias in line.names
            }
    return {}
