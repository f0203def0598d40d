"""Flags, their help, and files of settings."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from horizon_rl.cli import main, train_flags
from horizon_rl.cli.parse import read_settings
from horizon_rl.cli.train_flags import TrainCmd


def out_of(capsys, *args: str) -> str:
    try:
        assert main([*args]) == 0
    except SystemExit as stop:
        assert stop.code == 0
    return capsys.readouterr().out


def settings(capsys, *args: str) -> dict:
    return tomllib.loads(out_of(capsys, *args, "--print-config"))


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_help_shows_the_basic_flags_and_help_all_the_rest(capsys):
    short, whole = (out_of(capsys, "train", f) for f in ("--help", "--help-all"))
    assert "--groups" in short and "--minutes" in short and "--help-all" in short
    for flag in ("--learner.ppo.learning-rate", "--rows-per-env", "--leap.recovery"):
        assert flag not in short and flag in whole
    assert "--groups" in whole
    assert len(short.splitlines()) < 75


def test_hidden_flags_are_taken_all_the_same(capsys):
    assert settings(capsys, "train", "--rows-per-env", "7")["rows_per_env"] == 7


def test_text_of_a_flag_is_one_paragraph(capsys):
    lines = out_of(capsys, "train", "--help").splitlines()
    text = " ".join(line.strip("│ ") for line in lines)
    # In the code a line ends after "a run (or the `last`) or a"; no line is cut short here.
    (flag,) = [i for i, line in enumerate(lines) if "--init" in line]
    assert (
        "a run (or the `last`) or a checkpoint, of which the weights are taken" in text
    )
    assert all(len(line.strip("│ ")) > 40 for line in lines[flag : flag + 3])


def test_flag_that_is_on_can_be_read_and_turned_off(capsys):
    assert "--stand, --no-stand" in out_of(capsys, "eval", "--help")
    assert "--no-json" not in out_of(capsys, "domains", "--help")
    assert settings(capsys, "eval", "stand", "--no-stand")["stand"] is False


def test_settings_go_to_a_file_and_back(capsys):
    flags = ("--preset", "smoke", "--policy", "transformer", "--num-envs", "32")
    flags += ("--learner.ppo.learning-rate", "0.0005", "--levels", "contact=0.5")
    text = out_of(capsys, "train", *flags, "--print-config")
    found = tomllib.loads(text)
    assert found["num_envs"] == 32 and found["learner"]["actor"]["num_heads"] == 8
    Path("run.toml").write_text(text)
    assert out_of(capsys, "train", "--config", "run.toml", "--print-config") == text


def test_command_line_wins_over_the_file_and_the_file_over_the_preset(capsys):
    Path("run.toml").write_text("preset = 'smoke'\nnum-envs = 8\ntask.episode_s = 2.0")
    found = settings(capsys, "train", "--config", "run.toml", "--seed", "3")
    usual = settings(capsys, "train", "--preset", "smoke", "--seed", "3")
    assert found["num_envs"] == 8 != usual["num_envs"]
    assert found["task"].pop("episode_s") == 2.0 != usual["task"].pop("episode_s")
    del found["num_envs"], usual["num_envs"]
    assert found == usual
    more = ("--config", "run.toml", "--num-envs", "9")
    assert settings(capsys, "train", *more)["num_envs"] == 9


def test_file_may_hold_what_has_no_default_and_paths(capsys):
    Path("e.toml").write_text(
        "policies = ['a', 'b']\nseverity = [0.5]\njson = 'x.json'"
    )
    found = settings(capsys, "eval", "--config", "e.toml")
    assert found["policies"] == ["a", "b"] and found["severity"] == [0.5]
    assert found["json"] == "x.json"
    assert settings(capsys, "eval", "c", "--config", "e.toml")["policies"] == ["c"]


@pytest.mark.parametrize("words", [("1", "0"), ("1", "0", "x"), ("1", "0", "0", "0")])
def test_wrong_values_are_answered_without_names_of_python(words, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["play", "core", "--command", *words])
    err = capsys.readouterr().err
    assert exit_.value.code == 2
    assert f"accepted: FLOAT FLOAT FLOAT; found: {' '.join(words)}" in err
    assert not re.search(r"typing|Within|tuple|\[/?bold", err)


def test_smallest_preset_has_a_small_table(capsys):
    assert settings(capsys, "train", "--preset", "smoke")["table"] == 4
    assert settings(capsys, "train", "--preset", "smoke", "--table", "9")["table"] == 9
    assert settings(capsys, "train")["table"] == 128


def test_printing_runs_nothing(capsys):
    assert settings(capsys, "rehearse")["seeds"] == 5
    assert not list(Path().iterdir())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("num_env = 3", "f.toml:1: num_env: unknown setting 'num_env': did you mean"),
        (
            "seed = 1\n[learner.ppo]\nclip = 'x'",
            "f.toml:3: learner.ppo.clip: 'x' is not",
        ),
        ("[learner.ppo]\nclop = 1", "f.toml:2: learner.ppo.clop: unknown field 'clop'"),
        ("cfg = 1", "unknown setting 'cfg'"),
        ("table = 'x'", "f.toml:1: table: 'x' is not a whole number"),
        ("steps = -inf", "f.toml:1: steps: -inf is not a whole number"),
        ("seed = ", "f.toml: not valid TOML"),
        ("preset = 'lapdog'", "unknown preset 'lapdog': did you mean 'laptop'"),
    ],
)
def test_bad_file_is_answered_with_its_line(text, message, capsys):
    Path("f.toml").write_text(text)
    assert main(["train", "--config", "f.toml", "--print-config"]) == 2
    assert message in capsys.readouterr().err


def test_missing_file_is_named(capsys):
    assert main(["domains", "--config", "no.toml"]) == 2
    assert "--config no.toml: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "args",
    [("eval", "coer"), ("export", "coer", "a.onnx"), ("train", "--init", "coer")],
)
def test_policy_that_is_not_there_is_answered_with_a_guess(args, capsys):
    pytest.importorskip("torch")
    assert main([*args]) == 2
    assert "'coer': did you mean 'core'?" in capsys.readouterr().err


def test_what_a_file_does_not_name_is_taken_as_it_is():
    given = {"preset": "smoke", "learner": {"ppo": {"num-epochs": 3}}}
    usual = train_flags.default(["--preset", "smoke"]).cfg
    found = read_settings(train_flags, TrainCmd, given).cfg
    assert found.learner.ppo.num_epochs == 3 != usual.learner.ppo.num_epochs
    same = {"learner": replace(usual.learner, ppo=found.learner.ppo)}
    assert found == replace(usual, **same)
    # Not even checked again: grids read thousands of runs.
    with patch.object(type(usual.task), "__post_init__", side_effect=AssertionError):
        assert read_settings(train_flags, TrainCmd, given).cfg == found


def test_number_out_of_bounds_is_named_by_the_flag_that_gave_it(capsys):
    assert main(["train", "--learner.ppo.gamma", "2"]) == 2
    assert "--learner.ppo.gamma is 2; accepted: " in capsys.readouterr().err
    assert main(["train", "--learner.ppo.gamma=nan", "--steps", "9"]) == 2
    assert "--learner.ppo.gamma is nan; accepted: " in capsys.readouterr().err
