"""A copy of a run is at every moment what a kill would have left."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from horizon_rl.grid.transport import LISTING, pack, unpack
from horizon_rl.support.errors import InputError


def write(run: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text(text)


def contents(run: Path) -> dict[str, str]:
    files = (f for f in run.rglob("*") if f.is_file())
    return {f.relative_to(run).as_posix(): f.read_text() for f in files}


def test_only_what_changed_is_sent_and_the_copy_is_the_run(tmp_path):
    run, copy, sent = tmp_path / "run", tmp_path / "copy", {}
    assert pack(run, sent) is None
    write(run, {"journal.jsonl": "1\n", "checkpoints/initial/weights": "w" * 10_000})
    first = pack(run, sent)
    assert first and pack(run, sent) is None
    unpack(first, copy)
    write(run, {"journal.jsonl": "1\n2\n", "evidence/phase-00000.npz": "e"})
    second = pack(run, sent)
    assert second and b"wwww" in first and b"wwww" not in second
    unpack(second, copy)
    assert contents(copy) == contents(run)


def test_what_the_run_has_removed_goes_and_what_is_being_written_stays(tmp_path):
    run, copy, sent = tmp_path / "run", tmp_path / "copy", {}
    write(run, {"journal.jsonl": "1\n", "checkpoints/phase-00001/weights": "old"})
    unpack(pack(run, sent) or b"", copy)
    (run / "checkpoints/phase-00001/weights").unlink()
    write(run, {"journal.jsonl": "1\n2\n", "checkpoints/.aside-1-x/weights": "half"})
    unpack(pack(run, sent) or b"", copy)
    assert contents(copy) == {"journal.jsonl": "1\n2\n"}


def test_the_journal_is_written_last(tmp_path, monkeypatch):
    run, copy = tmp_path / "run", tmp_path / "copy"
    write(run, {"journal.jsonl": "1\n", "zzz": "z", "checkpoints/initial/weights": "w"})
    data = pack(run, {})
    assert data
    written = []

    def die_at_the_journal(path, content):
        if path.name == "journal.jsonl":
            raise KeyboardInterrupt
        written.append(path.name)

    monkeypatch.setattr("horizon_rl.grid.transport.write_file", die_at_the_journal)
    with pytest.raises(KeyboardInterrupt):
        unpack(data, copy)
    assert written == ["weights", "zzz"]


@pytest.mark.parametrize("name", ["../beside", "/{}/beside", "a/../../beside"])
def test_a_file_outside_of_the_run_is_refused(name, tmp_path):
    name = f"run/{name.format(tmp_path)}"
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for each, content in ((LISTING, json.dumps([]).encode()), (name, b"x")):
            info = tarfile.TarInfo(each)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    with pytest.raises(InputError, match="beside lies outside of the run"):
        unpack(stream.getvalue(), tmp_path / "run")
    assert not (tmp_path / "beside").exists()
