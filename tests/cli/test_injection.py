"""Words of a stranger's run: a terminal and a figure show them, and do nothing else."""

import ast
import io
import json
import re
import shutil
from pathlib import Path

import pytest

pytest.importorskip("scipy")

import run_files
from horizon_rl import cli
from horizon_rl.cli import main
from horizon_rl.cli.common import Terminal
from horizon_rl.curriculum import CheckpointRef, Paper
from horizon_rl.runs.journal import create_curriculum
from horizon_rl.show.table import Cell, Table
from horizon_rl.support.printable import printable

HOSTILE = (
    "\x1b[2J\x1b]0;title\x07gone",
    "\x9b31mred",
    "[/red]",
    "[link=file:///etc/passwd]here[/link]",
    r"$\frac{$",
    ":skull:",
    "safe\u202egnp.exe",
    "a\rb\x08\x7f",
)
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
BARE_PRINTS = {
    "__init__.py": (1, "our own version"),
    "completion.py": (3, "a script of our own names, for a shell"),
    "grid_plan.py": (1, "numbers, and names of runs, which `study_file.NAME` limits"),
    "parse.py": (2, "words of our own, and TOML for a file"),
    "progress.py": (1, "made printable before"),
}
"""How many texts modules give to `print`, neither constant nor `printable(...)`; why."""


@pytest.fixture(params=HOSTILE, ids=range(len(HOSTILE)))
def run(request, tmp_path) -> Path:
    """Write a run in which every free text is hostile."""
    word, folder = request.param, tmp_path / "run"
    folder.mkdir()
    train = {**run_files.TRAIN, "method": word}
    context = {**run_files.CONTEXT, "train": train, "start": word}
    catalogue = json.loads(json.dumps(context["catalogue"]))
    for group, name in zip(catalogue["groups"], (word, "com"), strict=False):
        group["name"] = name
    context["catalogue"] = catalogue
    journal = folder / "journal.jsonl"
    curriculum = create_curriculum(journal, [word, "com"], Paper(), context)
    for phase, evidence in enumerate(run_files.PHASES):
        kept = curriculum.decide(evidence).keeps_weights
        name = CheckpointRef(f"phase-{phase:05d}", "0" * 64)
        curriculum.tell(evidence, name if kept else None)
    curriculum.close()
    run_files.write_times(folder)
    run_files.write_metrics(folder)
    return folder


@pytest.mark.parametrize(
    "command",
    [
        ["status"],
        ["study"],
        ["study", "--markdown"],
        ["study", "--figures", "figures"],
        ["diagnose"],
        ["verify"],
        ["report", "--out", "report"],
        ["train", "--resume"],
        ["eval"],
        ["export", "{}", "out.onnx"],
        ["rehearse", "--resume", "--run"],
    ],
    ids=" ".join,
)
def test_words_of_a_run_are_shown_and_nothing_else(
    run, command, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    name, *rest = command
    args = [part.format(run) for part in rest]
    args = args if "{}" in command else [*args, str(run)]
    if name in ("status", "study", "diagnose", "verify", "report"):
        args = [str(run), *rest]
    assert main([name, *args]) in (0, 1, 2)
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    assert not CONTROL.search(out + err)
    for drawn in tmp_path.rglob("*.svg"):
        assert not CONTROL.search(drawn.read_text())


@pytest.mark.parametrize("word", HOSTILE, ids=range(len(HOSTILE)))
def test_names_of_files_are_shown_and_nothing_else(word, tmp_path, monkeypatch, capsys):
    folder = tmp_path / word.replace("/", "|")
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    for args in (["status", str(folder)], ["play", str(folder / "no.onnx")]):
        assert main(args) == 2
        assert not CONTROL.search(capsys.readouterr().err)
    shutil.copy(Path(run_files.__file__), folder / "journal.jsonl")
    assert main(["status", str(folder)]) == 2
    assert not CONTROL.search(capsys.readouterr().err)


@pytest.mark.parametrize("word", HOSTILE, ids=range(len(HOSTILE)))
def test_catalogue_with_such_a_group_is_refused(word, tmp_path, capsys):
    file = tmp_path / "mine.toml"
    table = f"[groups.{json.dumps(word)}.parameters.scale]"
    file.write_text(f"{table}\nbaseline = [1.0, 1.0]\nlimit = [0.5, 2.0]\n")
    assert main(["rehearse", "--catalogue", str(file)]) == 2
    err = capsys.readouterr().err
    assert "names consist of letters" in err or "mine.toml:1" in err
    assert not CONTROL.search(err)


def test_terminal_keeps_its_own_colours_only():
    text = io.StringIO()
    console = Terminal(file=text, force_terminal=True, width=60)
    console.print("plain \x1b[2J [/red] :skull:")
    row = (Cell("\x1b[2J", "red"), "\x07")
    console.print_table(Table("\x1b]0;x\x07", ("a\x1b", "b"), (row,), ("\x9b2J",)))
    shown = text.getvalue()
    assert "\x1b[31m" in shown, "red is ours"
    ours = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert not CONTROL.search(ours)
    assert "[/red] :skull:" in ours
    assert r"\x1b[2J" in ours and r"\x9b2J" in ours


def test_printable_text_is_left_as_it_is():
    assert printable("Größe ± 3 °\n\tja …") == "Größe ± 3 °\n\tja …"
    assert printable("\x1b[1m\u202e\ud800") == r"\x1b[1m\u202e\ud800"


def test_commands_say_what_is_not_constant():
    modules = Path(cli.__file__).parent.glob("*.py")
    bare = {file.name: _num_bare_prints(file) for file in modules}
    del bare["common.py"]  # Where `say` is.
    allowed = {name: number for name, (number, _) in BARE_PRINTS.items()}
    assert {name: number for name, number in bare.items() if number} == allowed


def _num_bare_prints(file: Path) -> int:
    """Count the texts that calls of `print` get and nobody made printable."""
    calls = [
        n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Call)
    ]
    made = {id(call) for call in calls if ast.unparse(call.func) == "printable"}
    texts = [arg for n in calls if ast.unparse(n.func) == "print" for arg in n.args]
    return sum(not isinstance(t, ast.Constant) and id(t) not in made for t in texts)


def test_name_of_a_new_run_is_shown_and_nothing_else(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    few = ["--curriculum.max-phases", "2"]
    assert main(["rehearse", "--run", "a\x1b[2Jb", *few]) == 0
    out, err = capsys.readouterr()
    assert "Run: a\\x1b[2Jb\nFigure: a\\x1b[2Jb/frontiers.png" in out
    assert not CONTROL.search(out + err)
