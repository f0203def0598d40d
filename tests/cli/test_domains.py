"""`horizon domains`, as a user runs it."""

import json
import re

import pytest

from horizon_rl.cli import main


def test_table_is_whole_on_80_columns(capsys):
    assert main(["domains", "--level", "actuation=0.5"]) == 0
    out = capsys.readouterr().out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80
    row = next(line for line in out.splitlines() if "effort_limit" in line)
    assert row.split() == "effort_limit, N m 39..41 29.5..60.5 20..80 51.7%".split()
    heading = next(line for line in out.splitlines() if "disturbance" in line)
    assert heading.split()[-1] == "4.0%"


def test_json_has_the_documented_fields(capsys):
    assert main(["domains", "--json", "--level", "all=1", "--level", "mass=0"]) == 0
    groups = json.loads(capsys.readouterr().out)["groups"]
    assert len(groups) == 7
    assert groups["com"]["coverage"] == 1.0
    mass = groups["mass"]
    assert mass["level"] == 0.0
    assert mass["coverage"] == pytest.approx(0.2 / 4.6)
    assert mass["parameters"]["scale"] == {
        "baseline": [0.9, 1.1],
        "limit": [0.4, 5.0],
        "range": [0.9, 1.1],
        "coverage": pytest.approx(0.2 / 4.6),
        "unit": "",
        "draws": 1,
        "mass_power": 0.0,
        "length_power": 0.0,
        "about": "factor on every body's mass and inertia",
    }


def test_several_levels_in_one_flag(capsys):
    assert main(["domains", "--json", "--level", "mass=0.5,com=0.25"]) == 0
    groups = json.loads(capsys.readouterr().out)["groups"]
    assert (groups["mass"]["level"], groups["com"]["level"]) == (0.5, 0.25)


def test_catalogue_of_ones_own(capsys, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("[groups.wind.parameters.speed]\nbaseline=[0,1]\nlimit=[0,4]\n")
    assert main(["domains", "--json", "--catalogue", str(file)]) == 0
    assert list(json.loads(capsys.readouterr().out)["groups"]) == ["wind"]


def test_brackets_in_a_unit_are_shown_as_they_are(capsys, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        "[groups.wind.parameters.speed]\nbaseline=[0,1]\nlimit=[0,4]\nunit='[/s]'\n"
    )
    assert main(["domains", "--catalogue", str(file)]) == 0
    assert "speed, [/s]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--level", "mas=0.5"], "unknown group 'mas': did you mean 'mass'"),
        (["--level", "mass=2"], "outside 0..1"),
        (["--level", "mass"], "not of the form group=number"),
        (["--level", "mass=high"], "not of the form group=number"),
        (["--catalogue", "none.toml"], "cannot read catalogue none.toml"),
    ],
)
def test_bad_input_is_answered_in_one_line_with_code_2(args, message, capsys):
    assert main(["domains", *args]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("horizon: ") and message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no groups in this file"),
        ("this is not TOML", "not valid TOML"),
        (
            "[groups.m.parameters.s]\nbaseline=[2,1]\nlimit=[0,9]\n",
            ":2: .*smaller first",
        ),
        ("[groups.m.parameters.s]\nbaseline=[0,9]\nlimit=[1,2]\n", "does not contain"),
        (
            "[groups.m.parameters.s]\nbaseline=[nan,1]\nlimit=[0,9]\n",
            "not a finite number",
        ),
        (
            "[groups.m.parameters.s]\nbase=[0,1]\nlimit=[0,9]\n",
            "needs baseline and limit",
        ),
    ],
)
def test_bad_catalogue_file_is_answered_with_file_and_line(
    text, message, capsys, tmp_path
):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    assert main(["domains", "--catalogue", str(file)]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"horizon: {file}")
    assert re.search(message, err)
