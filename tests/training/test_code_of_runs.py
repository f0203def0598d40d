"""Runs that name code: it runs where its user brought it, and as it was."""

import json
import shutil
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from horizon_rl.cli import main
from horizon_rl.physics import effects
from horizon_rl.runs.lines import parse_json, to_line

CATALOGUE = """
extends = "paper"
[groups.mine.parameters.grip]
baseline = [1.0, 1.0]
limit = [0.5, 1.0]
effect = "{}"
"""
CODE = """
from pathlib import Path
Path({!r}).touch()

def loosen(rows, share):
    rows.friction = rows.friction * share
"""
TRAIN = ["--preset", "smoke", "--device", "cpu", "--table", "0"]


class Machine:
    """A user with a catalogue, a file of code that leaves a mark, and a run."""

    def __init__(self, folder: Path, patch, effect: str = "code.py:loosen"):
        self.folder, self.patch = folder, patch
        self.mark = folder / "ran"
        module = effect.partition(":")[0].removesuffix(".py")
        self.code = folder / f"{module.replace('.', '/')}.py"
        self.code.parent.mkdir(exist_ok=True)
        self.code.write_text(CODE.format(str(self.mark)))
        (folder / "mine.toml").write_text(CATALOGUE.format(effect))
        self.own, self.run = folder / "own cache", folder / "run"
        self.be(self.own)
        catalogue = ["--catalogue", str(folder / "mine.toml"), "--init", "scratch"]
        args = [*TRAIN, *catalogue, "--groups", "mine", "--run", str(self.run)]
        assert main(["train", *args, "--steps", "1500"]) == 0
        assert self.mark.exists()
        self.mark.unlink()

    def be(self, cache: Path) -> None:
        """Be somebody: who has run what is kept in the cache folder."""
        self.patch.setenv("HORIZON_CACHE", str(cache))
        # As in a new process.
        effects._load_effect.cache_clear()
        for name in [name for name in sys.modules if name.startswith("code_of_mine")]:
            del sys.modules[name]

    def resume(self, *args: str) -> int:
        budget = ["--steps", "3000", "--device", "cpu", "--table", "0"]
        return main(["train", "--resume", str(self.run), *budget, *args])


@pytest.fixture(scope="module")
def used(tmp_path_factory) -> Machine:
    """A machine, and beside it a copy of all that it holds."""
    folder = tmp_path_factory.mktemp("machine") / "used"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        machine = Machine(folder, patch)
    shutil.copytree(folder, folder.with_name("kept"))
    return machine


@pytest.fixture
def machine(used, monkeypatch) -> Machine:
    """The machine as it was: its code and its run are known by their paths."""
    shutil.rmtree(used.folder)
    shutil.copytree(used.folder.with_name("kept"), used.folder)
    monkeypatch.chdir(used.folder)
    used.patch = monkeypatch
    used.be(used.own)
    return used


def test_code_of_a_stranger_s_run_does_not_run(machine, capsys):
    machine.be(machine.folder / "another cache")
    assert machine.resume() == 2
    err = capsys.readouterr().err
    assert not machine.mark.exists(), "it ran"
    assert "--trust" in err and str(machine.code) in err
    # Who has read it says so, once.
    assert machine.resume("--trust") == 0
    assert machine.mark.exists()
    assert machine.resume("--steps", "4500") == 0


def test_own_run_goes_on_without_a_question(machine):
    machine.be(machine.own)
    assert machine.resume() == 0
    assert machine.mark.exists()


def test_code_that_was_edited_since_is_refused(machine, capsys):
    machine.be(machine.own)
    machine.code.write_text(machine.code.read_text() + "\n# Or so.\n")
    for more in ((), ("--trust",)):
        assert machine.resume(*more) == 2
        err = capsys.readouterr().err
        assert "code.py" in err and "changed since the run began" in err
    assert not machine.mark.exists()


def test_code_that_is_gone_is_named(machine, capsys):
    machine.code.unlink()
    assert machine.resume() == 2
    assert "there is no file" in capsys.readouterr().err


def test_module_of_the_working_folder_is_not_imported_unasked(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    machine = Machine(tmp_path, monkeypatch, "code_of_mine.deep:loosen")
    machine.be(tmp_path / "another cache")
    assert machine.resume() == 2
    assert not machine.mark.exists()
    assert "--trust" in capsys.readouterr().err


def test_run_of_an_older_version_has_no_record_of_its_code(machine):
    journal = machine.run / "journal.jsonl"
    first, *others = journal.read_bytes().splitlines(keepends=True)
    header = parse_json(first, "")
    assert set(header["context"].pop("code")) == {"mine.grip"}
    del header["crc"]
    journal.write_bytes(to_line(header) + b"".join(others))
    machine.be(machine.folder / "another cache")
    assert machine.resume() == 2
    assert machine.resume("--trust") == 0


def test_run_without_code_says_nothing_of_it(tmp_path):
    run = tmp_path / "run"
    assert main(["train", *TRAIN, "--run", str(run), "--steps", "1500"]) == 0
    header = json.loads((run / "journal.jsonl").read_text().splitlines()[0])
    assert "code" not in header["context"]


def test_export_of_a_stranger_s_policy_runs_no_code(machine, capsys, monkeypatch):
    # Motors are what an export takes from a catalogue: so the code is theirs.
    from horizon_rl.runs.journal import committed_folder

    folder = committed_folder(machine.run)
    assert folder
    copy = Path(shutil.copytree(folder, machine.folder / "theirs"))
    (copy / "SHA256SUMS").unlink()
    record = json.loads((copy / "checkpoint.json").read_text())
    groups = {group["name"]: group for group in record["catalogue"]["groups"]}
    motors = groups["actuation"]["parameters"][0]
    motors["effect"] = f"{machine.code}:loosen"
    (copy / "checkpoint.json").write_text(json.dumps(record))
    machine.be(machine.folder / "another cache")
    assert main(["export", str(copy), "out.onnx"]) == 2
    assert not machine.mark.exists()
    assert "--trust" in capsys.readouterr().err
