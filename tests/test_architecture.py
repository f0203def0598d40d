"""Imports go one way, as docs/architecture.md draws them."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "horizon_rl"
BASE = {
    *("errors", "records", "durable", "toml_text", "named_code"),
    *("graphs", "ranks", "horizon_rl"),
}
MAY_IMPORT = {
    "domains": set(),
    "curriculum": set(),
    "robots": set(),
    "physics": {"domains", "robots"},
    "task": {"domains", "physics", "robots"},
    "learning": {"task"},
    "training": {"curriculum", "domains", "learning", "physics", "robots", "task"},
    "models": {"curriculum", "learning"},
    "evaluation": {
        *("curriculum", "domains", "learning", "models"),
        *("physics", "robots", "task"),
    },
    "deploy": {
        *("domains", "evaluation", "learning", "models"),
        *("physics", "robots", "task"),
    },
    "rehearsal": {"curriculum", "domains"},
    "show": {
        *("curriculum", "domains", "evaluation", "models"),
        *("robots", "training"),
    },
    "viewer": {
        *("curriculum", "domains", "evaluation", "learning", "models"),
        *("physics", "robots", "task"),
    },
    "report": {"curriculum", "evaluation", "models", "show", "task"},
    "bench": {
        *("curriculum", "domains", "learning", "physics"),
        *("evaluation", "robots", "task", "training"),
    },
}


def imported_parts(file: Path) -> set[str]:
    """List the parts of the package that a file imports, also inside functions."""
    parts = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module.split(".")]
            if node.module == "horizon_rl":
                names = [["horizon_rl", alias.name] for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        else:
            continue
        parts |= {n[1] for n in names if n[0] == "horizon_rl" and len(n) > 1}
    return {p for p in parts if not p.startswith("__")}


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_part_imports_only_what_lies_before_it(part):
    files = sorted((PACKAGE / part).rglob("*.py"))
    assert files
    for file in files:
        foreign = imported_parts(file) - {part} - BASE - MAY_IMPORT[part]
        assert not foreign, f"{file.name} imports {foreign}"


def test_every_part_has_its_place():
    parts = {p.parent.name for p in PACKAGE.glob("*/__init__.py")}
    assert parts == set(MAY_IMPORT) | {"cli"}
