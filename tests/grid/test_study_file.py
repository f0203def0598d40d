"""A study expands to runs with stable names and exact settings."""

import time
from pathlib import Path

import pytest

from horizon_rl.domains import paper_catalogue
from horizon_rl.grid.study_file import EvaluationPlan, expand, parse_study
from horizon_rl.support.errors import InputError

NAMES = paper_catalogue().names
TEXT = """
seeds = [0, 1]
groups = ["core", "mass,com"]

[train]
preset = "smoke"
num-envs = 32
learner.ppo.num_epochs = 2

[methods.horizon]
[methods."fixed-0.35"]
method = "fixed"
levels = "0.35"

[settings.plain]
[settings.quiet]
seeds = [3]
learner.ppo.entropy-coef = 0.002
"""


def runs_of(text: str):
    return {run.name: run for run in expand(parse_study(text), lambda _: NAMES)}


def test_names_say_method_groups_setting_and_seed():
    runs = runs_of(TEXT)
    assert list(runs)[:4] == [
        "horizon_core_plain_s0",
        "horizon_core_plain_s1",
        "horizon_mass+com_plain_s0",
        "horizon_mass+com_plain_s1",
    ]
    assert "fixed-0.35_mass+com_quiet_s3" in runs
    assert len(runs) == 2 * 2 * (2 + 1)


def test_settings_are_laid_over_each_other_table_by_table():
    run = runs_of(TEXT)["fixed-0.35_core_quiet_s3"]
    assert run.settings == {
        "preset": "smoke",
        "num_envs": 32,
        "method": "fixed",
        "levels": "0.35",
        "groups": "core",
        "seed": 3,
        "learner": {"ppo": {"num_epochs": 2, "entropy_coef": 0.002}},
    }
    assert run.cell == "fixed-0.35_core_quiet"


def test_another_method_in_the_study_renames_no_run():
    more = TEXT + "\n[methods.wide]\n[methods.adr]\nseeds = [7]\n"
    assert runs_of(TEXT).items() <= runs_of(more).items()


def test_each_and_pairs_stand_for_the_groups_of_the_catalogue():
    runs = runs_of('groups = ["each", "pairs", "full"]\n[methods.horizon]')
    assert len(runs) == 7 + 21 + 1
    assert runs["horizon_mass_s0"].settings["groups"] == "mass"
    assert runs["horizon_mass+com_s0"].settings["groups"] == "mass,com"
    mine = parse_study('groups = ["pairs"]\n[methods.horizon]')
    assert [r.groups for r in expand(mine, lambda _: ("a", "b"))] == ["a,b"]


def test_texts_may_name_the_seed():
    text = 'seeds = [4]\n[methods.distill]\nteachers = ["logs/x_s{seed}"]'
    (run,) = runs_of(text).values()
    assert run.settings["teachers"] == ["logs/x_s4"]


def test_a_record_does_not_say_where_the_studys_folder_was():
    text = '[methods.distill]\nteachers = ["{grid}/runs/x_s{seed}@mass=1"]'
    (run,) = runs_of(text).values()
    assert run.settings["teachers"] == ["{grid}/runs/x_s0@mass=1"]
    assert run.settings_in(Path("a/b"))["teachers"] == ["a/b/runs/x_s0@mass=1"]


def test_evaluation_plan_becomes_the_flags_of_horizon_eval():
    plan = EvaluationPlan(severity=(0.5, 1.0), columns=("own", "all"), episodes=64)
    assert plan.flags(("mass", "com")) == [
        *("--suite", "ood", "--severity", "0.5", "1.0"),
        *("--columns", "mass", "com", "mass+com", "all"),
        *("--draw", "dev", "--no-stand", "--episodes", "64"),
    ]
    assert "mass+mass" not in plan.flags(("mass",))
    assert EvaluationPlan(curve=True).flags(())[0] == "--curve"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("seeds = [0, 0]\n[methods.horizon]", "two runs of one name: horizon_s0"),
        ("seeds = [0]", "needs methods"),
        ("seeds = [-1]\n[methods.horizon]", "study:1: seeds is -1"),
        ("[methods.'a/b']", "study:1: methods.a/b: not a name for a folder"),
        ("[methods.fixed-0.35]\nlevels = '0.35'", 'quote the name: "fixed-0.35"'),
        ("[methods.horizon]\nseed = 3", "study:2: .*seeds are a list"),
        ("[methods.horizon]\n[train]\ngroups = 'mass'", "study:3: .*an axis"),
        ("[methods.horizon]\nseeds = 'all'", "study:2: .*a list"),
        ("color = 1\n[methods.horizon]", "color"),
        ("[methods.horizon]\n[[evaluate]]\nmarks = [0]", "marks is 0"),
        ("[methods.horizon]\nseeds = [-1]", "study:2: methods.horizon.seeds is -1"),
        ("[[methods.horizon]\n", "not valid TOML"),
    ],
)
def test_what_is_wrong_with_a_study_is_said(text, complaint):
    with pytest.raises(InputError, match=complaint):
        runs_of(text)


def test_ten_thousand_runs_expand_in_a_second():
    seeds = list(range(1000))
    began = time.process_time()
    assert (
        len(
            runs_of(
                f"seeds = {seeds}\ngroups = ['each', 'full', 'core', 'mass,com']\n"
                "[methods.horizon]"
            )
        )
        == 10_000
    )
    assert time.process_time() - began < 2.0
