"""Code that is named: what runs is the file that was hashed, and nothing beside it."""

import importlib.util
import sys
from importlib import _bootstrap_external
from pathlib import Path

import pytest

from horizon_rl.support import named_code
from horizon_rl.support.errors import InputError
from horizon_rl.support.named_code import code_digest, find_code, last_digest


def poison(file: Path) -> None:
    """Put a compiled file beside a source that Python takes for it unchecked."""
    code = compile("word = 'other'", str(file), "exec")
    make = _bootstrap_external._code_to_hash_pyc  # type: ignore[attr-defined]
    cached = Path(importlib.util.cache_from_source(str(file)))
    cached.parent.mkdir(exist_ok=True)
    cached.write_bytes(make(code, b"any hash", False))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """A working folder, in a process that has loaded nothing from it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setattr(sys, "modules", sys.modules.copy())
    monkeypatch.setattr(named_code, "_last_digests", {})
    (tmp_path / "payload.py").write_text("word = 'own'")
    (tmp_path / "outer").mkdir()
    (tmp_path / "outer/__init__.py").write_text("word = 'own'")
    (tmp_path / "outer/inner.py").write_text("from outer import word")
    return tmp_path


@pytest.mark.parametrize(
    ("source", "cached"),
    [
        ("payload.py:word", "payload.py"),
        ("payload:word", "payload.py"),
        ("outer.inner:word", "outer/inner.py"),
        ("outer.inner:word", "outer/__init__.py"),
        ("outer:word", "outer/__init__.py"),
    ],
)
def test_compiled_file_beside_the_source_never_runs(folder, source, cached):
    poison(folder / cached)
    assert find_code(source, "word", "", code_digest(source)) == "own"


@pytest.mark.parametrize("source", ["payload.py:word", "payload:word"])
def test_file_that_changed_after_its_hash_does_not_run(folder, source):
    digest = code_digest(source)
    assert last_digest(source) == digest
    (folder / "payload.py").write_text("open('ran', 'w')")
    with pytest.raises(InputError, match="changed after it was checked"):
        find_code(source, "word", "", digest)
    assert not (folder / "ran").exists()
    assert last_digest("other.py:word") == ""


def test_import_goes_on_as_before(folder):
    before = sys.meta_path[:]
    find_code("payload:word", "word", "")
    assert sys.meta_path == before
    with pytest.raises(InputError, match="no module or directory"):
        find_code("missing:word", "word", "")
    assert sys.meta_path == before
