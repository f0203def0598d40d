"""Suites of one's own: what a file can say, and what is answered to a bad one."""

import numpy as np
import pytest

from horizon_rl.domains import (
    Range,
    paper_catalogue,
    parse_catalogue,
    shipped_catalogue,
)
from horizon_rl.evaluation.suite_file import load_suite
from horizon_rl.support.errors import InputError


def column(suite, name="a"):
    return next(c for c in suite.columns if c.name == name)


def test_number_range_and_one_entry_per_draw(make_suite):
    suite = make_suite("""
        [columns.a]
        parameters.mass.scale = 5
        parameters.inertia.scale = [0.5, 0.75]
        parameters.com.offset = [[-0.05, 0.05], 0.0, 0.08]
        parameters.disturbance.external_force = [0.1, 0.2]
    """)
    spans = column(suite).spans
    assert spans["mass.scale"] == (Range(5.0, 5.0),)
    assert spans["inertia.scale"] == (Range(0.5, 0.75),)
    assert spans["com.offset"] == (Range(-0.05, 0.05), Range(0, 0), Range(0.08, 0.08))
    assert spans["disturbance.external_force"] == (Range(0.1, 0.2),) * 3
    parameter = paper_catalogue().parameters["actuation.stiffness"]
    assert spans["actuation.stiffness"] == (parameter.baseline,)
    values = suite.frozen["a"].instances
    assert (values["mass.scale"] == 5.0).all()
    assert (values["com.offset"][:, 1:] == [0.0, 0.08]).all()
    assert np.ptp(values["com.offset"][:, 0]) > 0.09


def test_a_suite_names_its_catalogue(make_suite, tmp_path):
    late = make_suite("""
        catalogue = "extended"
        [columns.a]
        parameters.latency.action_delay = 0.02
    """)
    assert late.catalogue == shipped_catalogue("extended")
    assert column(late).spans["latency.action_delay"] == (Range(0.02, 0.02),)


def test_a_catalogue_lies_beside_the_suite_and_the_caller_s_goes_before_it(tmp_path):
    (tmp_path / "mine.toml").write_text(
        'extends = "paper"\n[groups.mass.parameters.scale]\nlimit = [0.4, 2.0]\n'
    )
    file = tmp_path / "suite.toml"
    file.write_text('catalogue = "mine.toml"\n[columns.a]\ngroups = ["mass"]\n')
    assert column(load_suite(str(file))).spans["mass.scale"] == (Range(0.4, 2.0),)
    paper = load_suite(str(file), catalogue=paper_catalogue())
    assert column(paper).spans["mass.scale"] == (Range(0.4, 5.0),)
    file.write_text('catalogue = "gone.toml"\n[columns.a]\ngroups = ["mass"]\n')
    with pytest.raises(InputError, match=r"suite.toml:1: catalogue: .*gone.toml"):
        load_suite(str(file))


@pytest.mark.parametrize(
    "text",
    [
        "[columns.a]\nparameters.mass.scale = 2.0",
        '[columns.a]\nparameters = { "mass.scale" = 2.0 }',
        '[columns.a.parameters]\n"mass.scale" = [2.0, 2.0]',
        "[columns.a.parameters.mass]\nscale = [[2.0, 2.0]]",
    ],
)
def test_every_way_of_writing_a_parameter_is_the_same(make_suite, text):
    assert column(make_suite(text)).spans["mass.scale"] == (Range(2.0, 2.0),)


def test_groups_take_the_severity_and_levels_keep_theirs(make_suite):
    text = """
        severity = 0.5
        [columns.a]
        groups = ["mass"]
        levels = { com = 0.25 }
        [columns.b]
        groups = ["all"]
        levels = { mass = 0.0 }
        parameters.com.offset = 0.0
    """
    catalogue = paper_catalogue()
    for severity, level in ((None, 0.5), (0.8, 0.8)):
        suite = make_suite(text, severity=severity)
        assert suite.severity == level
        a = catalogue.ranges({"mass": level, "com": 0.25})
        assert all(column(suite).spans[name][0] == a[name] for name in a)
        levels = dict.fromkeys(catalogue.names, level) | {"mass": 0.0}
        b = catalogue.ranges(levels) | {"com.offset": Range(0.0, 0.0)}
        assert all(column(suite, "b").spans[name][0] == b[name] for name in b)


def test_columns_run_on_every_robot(make_suite):
    suite = make_suite("""
        robots = ["go2", "a1"]
        motors = "own"
        [columns]
        a = {}
        b.motors = "scaled"
    """)
    found = {c.name: (c.robot, c.motors) for c in suite.columns}
    assert found == {
        "a/go2": ("go2", "own"),
        "b/go2": ("go2", "scaled"),
        "a/a1": ("a1", "own"),
        "b/a1": ("a1", "scaled"),
    }


def test_robots_without_columns_are_columns(make_suite):
    suite = make_suite('robots = ["go2", "go2+stilts"]')
    assert [(c.name, c.robot) for c in suite.columns] == [
        ("go2", "go2"),
        ("go2+stilts", "go2+stilts"),
    ]


def test_one_robot_leaves_the_names_of_the_columns(make_suite):
    suite = make_suite('robots = ["a1"]\n[columns]\na = {}')
    assert [(c.name, c.robot) for c in suite.columns] == [("a", "a1")]


def test_robot_of_the_command_line_takes_go2s_place(make_suite):
    suite = make_suite("[columns]\na = {}", robot="go2+stilts")
    assert column(suite).robot == "go2+stilts"
    assert column(load_suite("ood", 0.0, "a1"), "mass").robot == "a1"


def test_task_success_seed_and_number_of_episodes(make_suite):
    suite = make_suite("""
        about = "mine"
        episodes = 3
        seed = 7
        [task]
        episode_s = 10
        command.max_speed = 0.6
        [success]
        max_error = 0.2
        [columns]
        a = {}
    """)
    assert (suite.name, suite.about, suite.seed) == ("mine", "mine", 7)
    assert suite.task.max_steps == 500 and suite.task.command.max_speed == 0.6
    assert suite.success.max_error == 0.2 and suite.success.min_length == 0.95
    assert len(suite.frozen["a"]) == 3 and suite.frozen["a"].noise_seed == 7


def test_catalogue_of_ones_own_sets_the_ranges(make_suite):
    text = 'extends = "paper"\n[groups.mass.parameters.scale]\nlimit = [0.5, 9.0]'
    suite = make_suite('[columns.a]\ngroups=["mass"]', catalogue=parse_catalogue(text))
    assert column(suite).spans["mass.scale"] == (Range(0.5, 9.0),)


A = "[columns.a]\n"
P = f"{A}parameters."


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            "sed = 1\n[columns]\na = {}",
            1,
            "sed: unknown field 'sed': did you mean 'seed'",
        ),
        (f"{A}grups = ['mass']", 2, "did you mean 'groups'"),
        (f"{A}groups = ['mas']", 2, "unknown group 'mas': did you mean 'mass'"),
        (f"{A}groups = 'mass'", 2, "'mass' is not a list"),
        (f"{A}groups = [1]", 2, "1 is not a string"),
        (f"{A}levels = {{ mas = 1 }}", 2, "unknown group 'mas': did you mean 'mass'"),
        (f"{A}levels = {{ mass = 1.5 }}", 2, "a.levels.mass is 1.5; accepted: 0..1"),
        (f"{A}levels = {{ mass = 'x' }}", 2, "'x' is not a number"),
        (f"{A}levels = 1", 2, "1 is not a table"),
        (
            f"{P}mass.scal = 1",
            2,
            "unknown parameter 'mass.scal': did you mean 'mass.sc",
        ),
        (
            f"{A}\n[columns.a.parameters]\n'mass.scal' = 1",
            4,
            "did you mean 'mass.scale'",
        ),
        (f"{A}[columns.a.parameters]\n'mass.scale' = -1", 3, "-1..-1 is impossible"),
        (f"{P}mass.scale = -1", 2, "-1..-1 is impossible; accepted: 0.01..inf"),
        (f"{P}contact.restitution = 2", 2, "2..2 is impossible; accepted: 0..1"),
        (f"{P}mass.scale = [2, 1]", 2, "2..1: needs two numbers"),
        (f"{P}mass.scale = nan", 2, "nan is not a finite number"),
        (f"{P}mass.scale = inf", 2, "inf is not a finite number"),
        (f"{P}mass.scale = [1, inf]", 2, "inf is not a finite number"),
        (f"{P}mass.scale = 1{'0' * 400}", 2, "is not a finite number"),
        (f"{P}mass.scale = 'x'", 2, "'x' is neither a number, a range"),
        (f"{P}mass.scale = true", 2, "True is neither a number, a range"),
        (f"{P}com.offset = [1, 2, 3, 4]", 2, "one for each of the 3 draws"),
        (f"{P}com.offset = [0, 0, 'x']", 2, "one for each of the 3 draws"),
        (f"{P}com.offset = []", 2, "one for each of the 3 draws"),
        (f"{A}parameters = 3", 2, "3 is not a table"),
        (f"{A}motors = 'mine'", 2, "'mine' is not one of scaled, own"),
        (f"{A}robot = 3", 2, "3 is not a string"),
        (f"{A}robot = 'go3'", 2, "unknown robot 'go3': did you mean 'go2'"),
        (f"{A}robot = 'nowhere.xml'", 2, "no such file"),
        ("robots = ['go3']", 1, "unknown robot 'go3'"),
        ("robots = 'go2'", 1, "'go2' is not a list"),
        ("robots = [1]", 1, "robots[0]: 1 is not a string"),
        (f"robots = ['a1']\n{A}robot = 'go2'", 1, "but one names its own"),
        (f"robots = ['go2', 'a1']\n{P}mass.scale = -1", 3, "-1..-1 is impossible"),
        ("columns = []", 1, "[] is not a table"),
        ("[columns]\na = 3", 2, "3 is not a table"),
        (f"about = 3\n{A}", 1, "3 is not a string"),
        (
            f"\nepisodes = 0\n{A}",
            2,
            "episodes is 0; accepted: whole numbers, 1..100000",
        ),
        (f"episodes = -1\n{A}", 1, "whole numbers, 1.."),
        (f"episodes = 2.0\n{A}", 1, "2.0 is not a whole number"),
        (f"episodes = true\n{A}", 1, "True is not a whole number"),
        (f"episodes = 'x'\n{A}", 1, "'x' is not a whole number"),
        (f"seed = -1\n{A}", 1, "seed is -1"),
        (f"seed = 'x'\n{A}", 1, "'x' is not a whole number"),
        (f"motors = 3\n{A}", 1, "3 is not one of scaled, own"),
        (f"severity = 'x'\n{A}groups = ['mass']", 1, "'x' is not a number"),
        (f"severity = true\n{A}groups = ['mass']", 1, "True is not a number"),
        (f"task = 3\n{A}", 1, "3 is not a table"),
        (f"{A}[task]\nepisod_s = 3", 3, "did you mean 'episode_s'"),
        (f"{A}[task]\nepisode_s = 'x'", 3, "task.episode_s: 'x' is not a number"),
        (f"{A}[task]\nepisode_s = inf", 3, "inf is not a finite number"),
        (
            f"{A}[task]\nepisode_s = 0.001",
            3,
            "task.episode_s is 0.001; accepted: 0.02..",
        ),
        (f"{A}[task]\nepisode_s = -1", 3, "is -1; accepted: 0.02.."),
        (f"{A}[task]\ncommand.hold_s = 0.001", 3, "command.hold_s is 0.001"),
        (f"{A}[task]\ncommand.max_speed = nan", 3, "nan is not a finite number"),
        (f"{A}[task]\npush.max_interval_s = 1", 2, "push.min_interval_s is above"),
        (f"{A}[success]\nmax_error = nan", 3, "nan is not a finite number"),
        (f"{A}[success]\nmin_length = 1.5", 3, "min_length is 1.5; accepted: 0..1"),
        (f"success = []\n{A}", 1, "[] is not a table"),
    ],
)
def test_bad_file_is_answered_with_its_line(make_suite, tmp_path, text, line, message):
    with pytest.raises(InputError) as error:
        make_suite(text)
    assert message in str(error.value)
    assert str(error.value).startswith(f"{tmp_path / 'mine.toml'}:{line}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "needs columns or robots"),
        ("[columns]", "needs columns or robots"),
        ("columns = {", "not valid TOML"),
        ("robots = []", "needs columns or robots"),
        (f"robots = ['go2', 'go2']\n{A}", "each of a name of its own"),
        (f"severity = 2\n{A}groups = ['mass']", "severity is 2; accepted: 0..1"),
        (f"severity = 1\n{A}", "no column of it shifts groups"),
    ],
)
def test_file_without_a_suite_is_refused(make_suite, text, message):
    with pytest.raises(InputError, match=message):
        make_suite(text)


@pytest.mark.parametrize("severity", [-0.1, 1.1, float("nan"), float("inf")])
def test_severity_outside_0_to_1_is_refused(severity):
    with pytest.raises(InputError, match="accepted: 0..1"):
        load_suite("ood", severity)


def test_severity_of_a_suite_that_shifts_nothing_is_refused(make_suite):
    for load in (lambda: load_suite("robots", 0.5), lambda: make_suite(severity=0.5)):
        with pytest.raises(InputError, match="has no severity"):
            load()


def test_robot_for_a_suite_that_names_its_own_is_refused(make_suite):
    for name in ("robots", "interventions"):
        with pytest.raises(InputError, match="leave out --robot a1"):
            load_suite(name, robot="a1")
    with pytest.raises(InputError, match="leave out --robot a1"):
        make_suite('robots = ["go2"]', robot="a1")


def test_unknown_robot_and_suite_are_refused():
    with pytest.raises(InputError, match="^unknown robot 'a2'.*MJCF file"):
        load_suite("ood", robot="a2")
    with pytest.raises(InputError, match="unknown suite 'odd': did you mean 'ood'"):
        load_suite("odd")


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        load_suite(str(tmp_path / "none.toml"))
    with pytest.raises(InputError, match="cannot read"):
        (tmp_path / "folder.toml").mkdir()
        load_suite(str(tmp_path / "folder.toml"))
    with pytest.raises(InputError, match="cannot read"):
        (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
        load_suite(str(tmp_path / "bytes.toml"))


def test_numbers_of_all_columns_together_are_bounded(make_suite):
    columns = "".join(f"c{k} = {{}}\n" for k in range(200))
    with pytest.raises(InputError, match="columns times episodes times draws is"):
        make_suite(f"episodes = 100000\n[columns]\n{columns}")
