"""`horizon eval`, as a user runs it."""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mujoco")

from horizon_rl.cli import main, progress
from horizon_rl.evaluation import evaluate as evaluate_module
from horizon_rl.show import failure_figure

SUITE = """
episodes = 4
[task]
episode_s = 0.2
[columns]
plain = {}
heavy.parameters.mass.scale = [2.0, 4.0]
shifted.groups = ["mass", "com"]
"""

CODE = """
import numpy as np

def stand(observations):
    return np.zeros((len(observations), 12))

def fold(observations):
    return np.tile([0.0, 6.0, -8.0], (len(observations), 4))

def narrow(observations):
    return np.zeros((len(observations), 3))

def broken(observations):
    return np.full((len(observations), 12), np.nan)
"""


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch) -> Path:
    """Work in an empty folder, and keep away from the user's results."""
    monkeypatch.setenv("HORIZON_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("mine.toml").write_text(SUITE)
    Path("code.py").write_text(CODE)
    return tmp_path


def run(capsys, *args) -> str:
    """Evaluate on the small suite; return what was printed."""
    assert main(["eval", *args, "--suite", "mine.toml", "--device", "cpu"]) == 0
    out = capsys.readouterr().out
    assert "…" not in out and max(map(len, out.splitlines())) <= 80
    return out


def bad(capsys, *args) -> str:
    """Run a command that must be refused; return its one line of complaint."""
    assert main(["eval", *args, "--device", "cpu"]) == 2
    out, err = capsys.readouterr()
    said = ("done", " s")
    lines = [line for line in err.splitlines() if not line.endswith(said)]
    assert out == "" and len(lines) == 1 and lines[0].startswith("horizon: ")
    return err


def read(path: str):
    return json.loads(Path(path).read_text())


def row(out: str, name: str) -> str:
    return next(line for line in out.splitlines() if line.split()[:1] == [name])


def test_table_of_one_policy(capsys):
    out = run(capsys, "code.py:fold")
    assert "code.py:fold in mine (dev) at severity 1, suite " in out
    for name in ("plain", "heavy", "shifted"):
        assert row(out, name)
    for heading in ("success", "close", "length", "error", "stand", "impos-"):
        assert heading in out


def test_draws_are_other_scenarios_on_record(capsys):
    run(capsys, "code.py:stand", "--json", "dev.json")
    out = run(capsys, "code.py:stand", "--draw", "test", "--json", "test.json")
    assert "in mine (test) at severity 1, suite " in out
    dev, test = read("dev.json"), read("test.json")
    assert (dev["suite"]["draw"], test["suite"]["draw"]) == ("dev", "test")
    assert dev["suite"]["hash"] != test["suite"]["hash"]
    with pytest.raises(SystemExit) as stop:
        main(["eval", "stand", "--draw", "exam"])
    assert stop.value.code == 2 and "invalid choice 'exam'" in capsys.readouterr().err


def test_floor_can_be_left_out(capsys):
    run(capsys, "code.py:stand", "--no-stand", "--json", "a.json")
    assert read("a.json")["columns"]["plain"]["stand"] is None


def test_policies_side_by_side(capsys):
    out = run(capsys, "code.py:stand", "down=code.py:fold")
    names = ["code.py:stand", "down", "stand", "impossible"]
    assert row(out, "column").split() == ["column", *names]
    assert "Against code.py:stand, over the columns" in out
    beside = out[out.index("Beside success") :]
    assert row(beside, "plain").count(" / ") == 4
    assert "±" not in out and "scenario" in out


def test_tables_as_markdown(capsys):
    args = ["code.py:stand", "code.py:fold", "--suite", "mine.toml", "--markdown"]
    assert main(["eval", *args, "--device", "cpu"]) == 0
    out = capsys.readouterr().out
    assert "**Success, %, in mine (dev) at severity 1, suite " in out
    assert "| column | code.py:stand | code.py:fold | stand | impossible |" in out
    assert "**Beside success, in mine (dev) at severity 1, suite " in out


def test_seeds_of_one_name_are_one_method(capsys):
    seeds = ["a=code.py:stand", "a=stand", "b=code.py:fold", "b=code.py:fold"]
    out = run(capsys, *seeds, "--json", "all.json")
    assert "mean ± s.d. over training seeds" in out
    assert "±" in row(out, "plain")
    better = row(out[out.index("Against a") :], "b")
    assert better.split()[1] == "2" and better.split()[-1] == "seed"
    assert [one["policy"] for one in read("all.json")] == ["a", "a", "b", "b"]


def test_results_as_a_file(capsys):
    out = run(capsys, "name=code.py:stand", "--json", "a.json")
    assert "results in a.json" in out
    data = read("a.json")
    assert data["policy"] == "name" and set(data["suite"]) == {
        *("name", "draw", "hash", "severity")
    }
    assert data["suite"]["name"] == "mine" and data["suite"]["severity"] == 1.0
    assert list(data["columns"]) == ["plain", "heavy", "shifted"]
    for column in data["columns"].values():
        assert 0.0 <= column["success"] <= 1.0 and 0.0 <= column["length"] <= 1.0
        assert column["success"] == column["stand"] and column["episodes"] == 4
        assert column["interval"]["low"] <= column["success"]
        assert column["tracking_error"] > 0.0 and column["yaw_error"] > 0.0
    assert data["context"]["device"] == "cpu"
    assert data["context"]["software"]["mujoco"]


def test_several_severities_give_a_table_each(capsys):
    args = ("--severity", "0", "0.5", "--json", "a.json", "--episodes", "2")
    out = run(capsys, "code.py:stand", *args)
    assert "mine (dev) at severity 0, suite" in out
    assert "mine (dev) at severity 0.5, suite" in out
    results = read("a.json")
    assert [one["suite"]["severity"] for one in results] == [0.0, 0.5]
    assert results[0]["suite"]["hash"] != results[1]["suite"]["hash"]
    assert results[0]["columns"]["plain"]["episodes"] == 2


def test_built_in_suite_on_another_robot(capsys):
    args = ["eval", "stand", "--episodes", "1", "--no-stand", "--robot", "a1"]
    args += ["--severity", "0", "--fresh", "--device", "cpu", "--json", "a.json"]
    assert main(args) == 0
    capsys.readouterr()
    # At severity 0 all nine columns are the control.
    assert list(read("a.json")["columns"]) == ["none"]


def test_columns_can_be_chosen_and_are_still_of_the_suite(capsys):
    run(capsys, "stand", "--no-stand", "--json", "all.json")
    for given in (["shifted,plain"], ["plain", "shifted"]):
        flags = ("--no-stand", "--json", "some.json", "--columns", *given)
        assert "heavy" not in run(capsys, "stand", *flags)
        whole, some = read("all.json"), read("some.json")
        assert list(some["columns"]) == ["plain", "shifted"]
        assert some["suite"] == whole["suite"]
        assert some["columns"]["shifted"] == whole["columns"]["shifted"]


def test_severity_0_shows_what_is_alike_once(capsys):
    Path("mine.toml").write_text(SUITE + 'more.groups = ["mass"]\n')
    out = run(capsys, "stand", "--severity", "0", "--episodes", "1", "--no-stand")
    assert row(out, "plain") and row(out, "heavy")
    assert "Severity 0 shifts nothing: shifted, more would be as plain" in out
    assert not [line for line in out.splitlines() if line.startswith("shifted")]
    out = run(capsys, "stand", "--severity", "1", "--episodes", "1", "--no-stand")
    assert row(out, "shifted") and row(out, "more")


@pytest.mark.parametrize("width", [50, 60, 80])
def test_narrow_terminal_loses_nothing(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    run(capsys, "stand", "--no-stand", "--episodes", "1")
    out = run(capsys, "stand", "--no-stand", "--episodes", "1")
    assert max(len(line) for line in out.splitlines() if "suite" not in line) <= width
    words = out.split()
    for heading in ("success", "length", "impos-", "rad/s", "tilt"):
        assert words.count(heading) == 1
    # Every part of the table names its rows.
    rows = [line for line in out.splitlines() if line.startswith("heavy ")]
    assert len(rows) == words.count("column") == (1 if width == 80 else 2)


def test_curve_of_policies_with_its_area_and_figure(capsys, short_evaluations):
    options = ["--episodes", "1", "--no-stand", "--fresh", "--device", "cpu"]
    args = ["code.py:stand", "down=code.py:fold", "--json", "a.json", "--figures", "f"]
    assert main(["eval", *args, "--curve", *options]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "Success, %, against severity, curve (dev), suite " in out
    assert "difference" in out and "Beside success" in out
    first, second = read("a.json")
    assert list(first["columns"])[:2] == ["none", "all@0.25"]
    for curve in second["curve"].values():
        assert curve["severities"] == [0.25, 0.5, 0.75, 1.0]
        assert curve["area"] == sum(curve["success"]) / 4
    assert list(first["curve"]) == ["all", "core"]
    assert {p.name for p in Path("f").iterdir()} == {"curve-dev.png", "curve-dev.svg"}


def test_explanation_with_figures(capsys):
    args = ("--explain", "shifted", "--figures", "figures")
    out = run(capsys, "code.py:fold", *args)
    assert "Success, %, in shifted, by value" in out
    assert "Worst scenarios of shifted (mine, dev, seed 0)" in out
    pictures = sorted(Path("figures").iterdir())
    assert {p.name for p in pictures} >= {
        *("shifted-1-mass.png", "shifted-1-com.png", "shifted-1-command.png")
    }
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in pictures)
    assert all(f"drawn in {p}" in out for p in pictures)


def test_figures_of_several_severities_do_not_replace_each_other(capsys, monkeypatch):
    class Empty:
        def savefig(self, path, dpi):
            Path(path).touch()

    monkeypatch.setattr(failure_figure, "failure_figure", lambda *args: Empty())
    args = ("--explain", "shifted", "--figures", "f", "--severity", "0", "1")
    out = run(capsys, "code.py:fold", *args)
    drawn = [path.name for path in Path("f").iterdir()]
    assert {"shifted-0-mass.png", "shifted-1-mass.png"} <= set(drawn)
    assert len(out.split("drawn in ")) - 1 == len(drawn)


def test_kept_results_come_at_once_and_fresh_ones_do_not(capsys, monkeypatch):
    fresh = ("stand", "--no-stand", "--fresh")
    run(capsys, *fresh)
    assert not Path("cache").exists()
    out = run(capsys, "stand", "--no-stand")
    files = {p: p.stat().st_ino for p in Path("cache").rglob("*.npz")}
    assert len(files) == 6  # Episodes and statics of three columns.

    def never(*args):
        raise AssertionError("ran again")

    with monkeypatch.context() as patch:
        patch.setattr(evaluate_module, "Lanes", never)
        assert run(capsys, "stand", "--no-stand") == out
        with pytest.raises(AssertionError, match="ran again"):
            main(["eval", *fresh, "--suite", "mine.toml"])
    run(capsys, *fresh)
    assert {p: p.stat().st_ino for p in Path("cache").rglob("*.npz")} == files


def test_long_names_are_folded_and_nothing_is_lost(capsys):
    long = "actuation-disturbance-inertia-reset"
    Path("mine.toml").write_text(SUITE.replace("heavy", long))
    folder = Path("logs/2026-11-15_08-00-00_some-method/checkpoints/segment-00012")
    folder.mkdir(parents=True)
    (folder / "p.py").write_text(CODE)
    for names in (["stand"], ["stand", "fold"]):
        out = run(capsys, *(f"{folder}/p.py:{n}" for n in names), "--episodes", "1")
        lines = [line.split()[0] for line in out.splitlines() if line.split()]
        start = lines.index("actuation-")
        assert lines[start + 1 : start + 3] == ["disturbance-", "inertia-reset"]
        assert len(row(out, "plain").split()) >= 3


def test_other_pose_than_the_trained_one_is_said(capsys):
    example = Path(__file__).parents[2] / "examples" / "own_robot.xml"
    Path("same.xml").write_text(example.read_text())
    low = example.read_text().replace("0 0.8 -1.5", "0 1.2 -2.4").replace("0.33", "0.2")
    Path("low.xml").write_text(low)
    said = {}
    for robot in ("same.xml", "low.xml"):
        for policy in ("base-mlp", "stand"):
            args = ["--suite", "mine.toml", "--robot", robot, "--no-stand"]
            assert main(["eval", policy, *args, "--episodes", "1"]) == 0
            said[robot, policy] = "track worse" in capsys.readouterr().err
    assert [key for key, value in said.items() if value] == [("low.xml", "base-mlp")]


def test_path_with_an_equals_sign_is_a_path(capsys):
    Path("lr=1.py").write_text(CODE)
    out = run(capsys, "lr=1.py:stand", "--episodes", "1", "--no-stand")
    assert "lr=1.py:stand in mine" in out


def test_brackets_in_a_name_are_no_markup(capsys):
    Path("runs[all]").mkdir()
    Path("runs[all]/p.py").write_text(CODE)
    source = "runs[all]/p.py:stand"
    assert f"{source} in mine" in run(capsys, source, "--episodes", "1")
    assert source in run(capsys, source, "stand", "--episodes", "1")


def test_reader_without_a_terminal_is_told_once_per_policy(capsys, monkeypatch):
    monkeypatch.setattr(progress, "monotonic", lambda: 0.0)  # As if in no time.
    assert main(["eval", "code.py:fold", "--suite", "mine.toml"]) == 0
    first, *rest = capsys.readouterr().err.splitlines()
    assert first.startswith("code.py:fold, stand: 3 columns of 4 episodes, up to ")
    assert rest == ["code.py:fold: mine done", "stand: mine done"]
    # From disk: nothing to wait for.
    assert main(["eval", "stand", "--suite", "mine.toml", "--no-stand"]) == 0
    assert capsys.readouterr().err == "stand: mine done\n"


def test_reader_without_a_terminal_sees_how_far_it_is(capsys, monkeypatch):
    seconds = iter([0.0, 0.0, 4.0, 11.0, 20.0, 22.0, 24.0])
    monkeypatch.setattr(progress, "monotonic", lambda: next(seconds))
    with progress.show_progress(2) as show:
        tell = show("core", "ood")
        for done in (0, 20, 50, 100):
            tell("mass", done, 100)
        show("stand", "ood")("mass", 50, 100)
    assert capsys.readouterr().err.splitlines() == [
        "core, mass: 25%, about 33 s left",
        "core: ood done",
        "stand, mass: 75%, about 7 s left",
    ]


MINE = ("--suite", "mine.toml")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "name at least one policy"),
        (["nowhere"], "no policy 'nowhere'. Accepted: a name of"),
        (["."], "no checkpoint '.'"),
        (["none.onnx"], "cannot read none.onnx"),
        (["code.py:walk"], "has no 'walk'"),
        (["no_module:walk"], "no module or directory of that name"),
        (["code.py:narrow", *MINE], "shape (256, 3); 256 worlds need (256, 12)"),
        (["code.py:broken", *MINE], "actions are not all finite numbers (NaN, inf)"),
        (
            ["stand", *MINE, "--episodes", "5"],
            "--episodes is 5; accepted: whole numbers, 1..4",
        ),
        (["stand", *MINE, "--episodes", "0"], "is 0; accepted: whole numbers, 1..1"),
        (["stand", *MINE, "--episodes", "-3"], "is -3; accepted: whole numbers, 1..1"),
        (
            ["stand", *MINE, "--episodes", "99999999"],
            "--episodes is 99999999; accepted",
        ),
        (["stand", *MINE, "--explain", "plai"], "did you mean 'plain'"),
        (["stand", *MINE, "--columns", "plain,haevy"], "did you mean 'heavy'"),
        (
            ["stand", *MINE, "--columns", "heavy", "--explain", "plain"],
            "unknown column 'plain'. Accepted: heavy",
        ),
        (["stand", "--curve", "--columns", "all"], "no --columns"),
        (["stand", *MINE, "--figures", "f"], "draws --curve, or what"),
        (["stand", "stand", *MINE, "--explain", "plain"], "name only one"),
        (["a=stand", "b=stand", "a=stand", *MINE], "'a' is the same policy twice"),
        (
            ["stand", *MINE, "--threads", "-1"],
            "--threads is -1; accepted: whole numbers, 0..",
        ),
        (["stand", *MINE, "--json", "no/a.json"], "no folder no"),
        (["stand", *MINE, "--json", "."], "a folder, not a file"),
        (["stand", *MINE, "--explain", "plain", "--figures", "code.py"], "a file, not"),
        (["stand", *MINE, "--severity", "2"], "severity is 2; accepted: 0..1"),
        (["stand", "--suite", "od"], "unknown suite 'od': did you mean 'ood'"),
        (
            ["stand", "--suite", "none.toml"],
            "cannot read none.toml: No such file or directory",
        ),
        (["stand", "--suite", "robots", "--severity", "1"], "has no severity"),
        (["stand", "--curve", "--severity", "1"], "no --suite, no --severity"),
        (["stand", "--curve", "--suite", "robots"], "no --suite, no --severity"),
        (["stand", "--curve", "--curve-groups", "mess"], "unknown group 'mess'"),
        (["stand", "--curve-groups", "mass"], "are those of --curve: add it"),
        (["stand", "--curve", "--robot", "b3"], "b3"),
        (["stand", "--suite", "robots", "--robot", "a1"], "leave out --robot a1"),
        (["stand", "--robot", "go3"], "unknown robot 'go3': did you mean 'go2'"),
        (["stand", "--catalogue", "none.toml"], "cannot read catalogue"),
    ],
)
def test_bad_input_is_answered_in_one_line_with_code_2(args, message, capsys):
    assert message in bad(capsys, *args)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "suite 'mine' needs columns or robots"),
        ("a =", "mine.toml: not valid TOML"),
        (
            "[columns.a]\nparameters.mass.scale = -1",
            "mine.toml:2: columns.a.parameters",
        ),
        ("episodes = true\n[columns]\na = {}", "mine.toml:1: episodes: True"),
    ],
)
def test_bad_suite_is_answered_in_one_line_with_code_2(text, message, capsys):
    Path("mine.toml").write_text(text)
    assert message in bad(capsys, "stand", *MINE)
