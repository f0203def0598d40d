"""Suites are frozen: the same numbers for everyone, and a hash that covers them all."""

import hashlib
import math
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest

from horizon_rl.domains import (
    Catalogue,
    Group,
    Parameter,
    Range,
    paper_catalogue,
    shipped_catalogue,
)
from horizon_rl.domains.catalogue import OPTIONAL_GROUPS
from horizon_rl.evaluation import suite as suite_module
from horizon_rl.evaluation.suite import (
    Column,
    FrozenColumn,
    Suite,
    freeze,
    robot_facts,
    uniforms,
)
from horizon_rl.evaluation.suite_file import BUILT_IN, load_suite
from horizon_rl.robots import FLAT, TERRAIN, load_robot, preset_names
from horizon_rl.support.errors import InputError
from horizon_rl.task import CommandCfg, NoiseCfg, PushCfg, SuccessCfg, TaskCfg

# A change here means that old results cannot be compared with new ones.
HASHES = {
    ("ood", 0.0): "922b4d32de504fefde9eadbc2316d173471922ab5fa90bc7e51a1df0c53c0a3b",
    ("ood", 0.5): "72995a6e030a9dbc95342f470aadbd99eb766150d2a8344833eafb8d08adb7ec",
    ("ood", 1.0): "ec6d4a0e9db39ecf478c2303b588323c84d19223c24f1788c45186697c4b604f",
    ("compositions", 1.0): (
        "1633f130cce8e2a16bc8be624b3eadc5583379c7c26685784875033dde1fb598"
    ),
    ("interventions", None): (
        "7fcdcdb3f442b7507cdf67b448a0d890eefff2bbb13be1ea0cb7af0c3ccb5382"
    ),
    ("robots", None): (
        "9290ef07a0781b4dbfcb63b2d480bcb36babf063bcd66d17ad6125a25e0bc57c"
    ),
    ("field", 0.5): "c02e0ea396327463ed6eb0aab6f2725a9b56cd20d4d891c5ad6e1b519fdd920f",
    ("field", 1.0): "358044611f664c6440fd29b7fcf6ab17a623456630f99fa143fb4f7ae3ea9da3",
    ("ground", None): (
        "8c65cca8f62778a9bedbf19941599a0d1a6625374fa1cc88229d2a11fbdd1dda"
    ),
}

COMPOSITIONS = [  # The paper's table of held-out and core-extension results, by row.
    {"contact", "inertia", "reset"},
    {"actuation", "mass", "contact", "reset"},
    {"actuation", "disturbance", "inertia", "reset"},
    {"mass", "com", "contact", "inertia"},
    {"actuation", "mass", "inertia", "contact"},
    {"disturbance", "com", "contact", "reset"},
    {"actuation", "mass", "disturbance", "com"},
    {"actuation", "mass", "disturbance", "com", "contact"},
    {"actuation", "mass", "disturbance", "com", "inertia"},
    {"actuation", "mass", "disturbance", "com", "reset"},
]


def baseline(catalogue: Catalogue | None = None) -> dict[str, tuple[Range, ...]]:
    parameters = (catalogue or paper_catalogue()).parameters
    return {name: (p.baseline,) * p.draws for name, p in parameters.items()}


def make(spans=None, num_episodes=8, task=None, **changes) -> Suite:
    names = ("robot", "motors")
    of_column = {k: changes.pop(k) for k in names if k in changes}
    column = Column(name="a", spans=baseline() | (spans or {}), **of_column)
    task = task or TaskCfg()
    return Suite(
        name="s", columns=(column,), num_episodes=num_episodes, task=task, **changes
    )


@pytest.mark.parametrize(("name", "severity"), HASHES)
def test_hash_of_a_built_in_suite_never_changes(name, severity):
    assert load_suite(name, severity).digest == HASHES[name, severity]


def test_severity_of_a_built_in_suite_is_1_by_default():
    assert {name for name, _ in HASHES} == set(BUILT_IN)
    assert load_suite("ood").digest == HASHES["ood", 1.0]
    assert load_suite("compositions").digest == HASHES["compositions", 1.0]


def test_hash_does_not_depend_on_the_process():
    code = (
        "from horizon_rl.evaluation.suite_file import load_suite; "
        "print(load_suite('ood', 0.5).digest)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONHASHSEED": "123"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == HASHES["ood", 0.5]


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 1},
        {"num_episodes": 9},
        {"spans": {"mass.scale": (Range(0.9, 1.1000001),)}},
        {"spans": {"com.offset": (Range(-0.003, 0.003),) * 2 + (Range(0.0, 0.003),)}},
        {"task": TaskCfg(episode_s=19.9)},
        {"task": TaskCfg(action_scale=0.3)},
        {"task": TaskCfg(command=CommandCfg(max_speed=0.9))},
        {"task": TaskCfg(command=CommandCfg(max_yaw_rate=0.9))},
        {"task": TaskCfg(push=PushCfg(min_interval_s=9.0))},
        {"task": TaskCfg(noise=NoiseCfg(gravity=0.06))},
        {"success": SuccessCfg(max_error=0.41)},
        {"success": SuccessCfg(min_length=0.94)},
        {"success": SuccessCfg(close_error=0.21)},
        {"robot": "go1"},
        {"robot": "go2+stilts"},
        {"motors": "own"},
    ],
    ids=str,
)
def test_every_number_changes_the_hash(changed):
    assert make(**changed).digest != make().digest


def test_severity_changes_the_hash():
    digests = {load_suite("ood", s).digest for s in (0.0, 0.5, 0.500001, 1.0)}
    assert len(digests) == 4


def test_a_fact_of_the_body_changes_the_hash(monkeypatch):
    before = make().digest
    facts = robot_facts("go2")
    heavier = {**facts, "trunk": {**facts["trunk"], "mass_kg": 7.0}}
    assert facts["trunk"]["mass_kg"] != 7.0
    monkeypatch.setattr(suite_module, "robot_facts", lambda _: heavier)
    assert make().digest != before


def test_what_is_only_said_of_a_body_is_no_fact():
    facts = robot_facts("go2")
    assert not {"name", "title", "sources", "licence"} & set(facts)


def test_any_number_of_a_body_changes_its_hash_and_none_of_the_world_around_it(
    tmp_path,
):
    def digest(content: str) -> str:
        file = tmp_path / f"{len([*tmp_path.iterdir()])}.xml"
        file.write_text(content)
        return make(robot=str(file)).digest

    text = TINY_DOG.replace("GEOM", "size='0.02'")
    boxes = TINY_DOG.replace("GEOM", "type='box' size='0.02 0.02 0.02'")
    assert len({*map(digest, (text, text.replace("0.02", "0.021"), boxes))}) == 3
    head, rest = text.split("<worldbody>")
    for own in OWN:
        assert digest(f"{head}{own}<worldbody>{rest}") == digest(text)


def test_file_that_has_changed_is_read_again(tmp_path):
    file = tmp_path / "a.xml"
    digests = set()
    for moment, size in enumerate((0.02, 0.021)):
        file.write_text(TINY_DOG.replace("GEOM", f"size='{size}'"))
        os.utime(file, ns=(moment, moment))
        assert load_robot(str(file)) is load_robot(str(file))
        digests.add(make(robot=str(file)).digest)
    assert len(digests) == 2


def test_file_of_the_same_content_has_the_same_hash(tmp_path):
    text = TINY_DOG.replace("GEOM", "size='0.02'")
    digests = set()
    for name in ("a.xml", "b.xml"):
        (tmp_path / name).write_text(text)
        digests.add(make(robot=str(tmp_path / name)).digest)
    assert len(digests) == 1


def test_name_of_a_column_changes_the_suite_and_not_the_column():
    one = make()
    other = replace(one, columns=(replace(one.columns[0], name="b"),))
    assert one.frozen["a"].digest == other.frozen["b"].digest
    assert one.digest != other.digest
    assert replace(one, name="t", about="x").digest == one.digest


def test_columns_of_ood_are_one_at_severity_0():
    frozen = load_suite("ood", 0.0).frozen
    assert len(frozen) == 9 and len({c.digest for c in frozen.values()}) == 1
    assert len({c.digest for c in load_suite("ood", 0.1).frozen.values()}) == 9


def test_test_draw_has_other_scenarios_of_the_same_ranges():
    dev, test = (load_suite("ood", 1.0, draw=draw) for draw in ("dev", "test"))
    assert dev.digest == HASHES["ood", 1.0] != test.digest
    ours, theirs = dev.frozen["all"], test.frozen["all"]
    assert dev.columns == test.columns and ours.noise_seed != theirs.noise_seed
    for mine, other in zip(
        numbers(ours).values(), numbers(theirs).values(), strict=True
    ):
        assert mine.shape == other.shape
        # Commands to stand, and pushes that fall on one step, may agree by chance.
        assert np.mean(mine == other) < 0.03
    again = load_suite("ood", 1.0, draw="test")
    assert again.digest == test.digest
    assert replace(test, seed=1).drawn_seed != test.drawn_seed


def test_two_columns_of_one_name_are_refused():
    one = make()
    with pytest.raises(InputError, match="each of a name of its own"):
        replace(one, columns=one.columns * 2)


def numbers(column: FrozenColumn) -> dict[str, np.ndarray]:
    return column.instances | {"c": column.commands, "p": column.push_steps}


def test_first_scenarios_of_a_larger_suite_are_those_of_a_smaller_one():
    small, large = (make(num_episodes=n).frozen["a"] for n in (7, 100))
    for name, values in numbers(small).items():
        np.testing.assert_array_equal(values, numbers(large)[name][:7])


def test_worlds_of_the_first_scenarios_do_not_depend_on_the_number():
    column = make(num_episodes=6).frozen["a"]
    few, all_ = column.scenarios(2), column.scenarios(6)
    assert len(few) == 2
    np.testing.assert_array_equal(few.pool.start_qpos, all_.pool.start_qpos[:2])
    for name, values in few.pool.fields.items():
        np.testing.assert_array_equal(values, all_.pool.fields[name][:2])


def test_a_parameter_more_leaves_the_draws_of_the_others():
    before = paper_catalogue()
    new = Parameter(name="new", baseline=Range(0.0, 1.0), limit=Range(0.0, 1.0))
    more = Catalogue((Group(name="first", parameters=(new,)), *before.groups))
    column = Column(name="a", spans=baseline(more))
    larger = Suite(name="s", columns=(column,), num_episodes=8, catalogue=more)
    found = numbers(freeze(larger, column))
    assert "first.new" in found
    for name, values in numbers(make().frozen["a"]).items():
        np.testing.assert_array_equal(values, found[name])


def test_uniforms_are_uniform_and_below_1():
    found = uniforms(0, "x", (20000,))
    assert found.min() >= 0.0 and found.max() < 1.0
    assert kstest(found, "uniform").pvalue > 0.01
    other = uniforms(0, "y", (20000,))
    assert abs(np.corrcoef(found, other)[0, 1]) < 0.03


def test_uniforms_are_those_of_the_key_that_seed_and_label_make():
    key = hashlib.sha256(b"3:mass.scale").digest()[:16]
    rng = np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little")))
    np.testing.assert_array_equal(uniforms(3, "mass.scale", (5, 2)), rng.random((5, 2)))


@pytest.mark.parametrize("name", ["ood", "interventions"])
def test_scenario_has_one_command_in_every_column(name):
    first, *others = load_suite(name).frozen.values()
    for other in others:
        np.testing.assert_array_equal(first.commands, other.commands)
        np.testing.assert_array_equal(first.push_steps, other.push_steps)


def test_commands_are_within_limits_and_a_tenth_stands():
    task = TaskCfg(command=CommandCfg(max_speed=0.8, max_yaw_rate=0.5))
    commands = make(num_episodes=1024, task=task).frozen["a"].commands
    assert commands.shape == (1024, 2, 3)
    assert (np.abs(commands) <= [0.8, 0.8, 0.5]).all()
    assert (np.abs(commands).max(axis=(0, 1)) > [0.79, 0.79, 0.49]).all()
    assert 0.08 < (commands == 0.0).all(axis=-1).mean() < 0.12


def test_pushes_come_at_the_intervals_of_the_task():
    steps = make(num_episodes=1024).frozen["a"].push_steps
    assert steps.shape == (1024, 2)
    gaps = np.diff(steps, axis=1)
    assert gaps.min() >= 499 and gaps.max() <= 751
    # Both happen in most episodes.
    assert 0.55 < (steps[:, 1] < 1000).mean() < 0.65


@pytest.mark.parametrize("severity", [0.0, 0.3, 1.0])
def test_severity_is_the_level_of_the_shifted_group_alone(severity: float):
    catalogue = paper_catalogue()
    for column in load_suite("ood", severity).columns:
        groups = {"all": catalogue.names, "none": ()}.get(column.name, [column.name])
        assert set(groups) <= set(catalogue.names)
        ranges = catalogue.ranges(dict.fromkeys(groups, severity))
        for name, parameter in catalogue.parameters.items():
            assert column.spans[name] == (ranges[name],) * parameter.draws


def test_ood_has_a_column_per_group_and_all_and_the_control():
    names = [column.name for column in load_suite("ood").columns]
    assert names == ["none", *paper_catalogue().names, "all"]


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_suite_has_the_unchanged_robot_at_the_baseline(name):
    suite = load_suite(name)
    control = suite.frozen["go2" if name == "robots" else "none"]
    at_baseline = load_suite("field" if name in ("field", "ground") else "ood", 0.0)
    # Commands are the one thing in which `ground` differs.
    assert (control.digest == at_baseline.frozen["all"].digest) == (name != "ground")
    for parameter, values in load_suite("ood", 0.0).frozen["all"].instances.items():
        assert np.array_equal(values, control.instances[parameter]), parameter


def test_field_has_a_column_per_group_beyond_the_paper_s_and_all_of_them():
    suite = load_suite("field", 0.5)
    assert suite.catalogue == shipped_catalogue("extended")
    moved = {
        column.name: {
            name.partition(".")[0]
            for name, p in suite.catalogue.parameters.items()
            if column.spans[name] != (p.baseline,) * p.draws
        }
        for column in suite.columns
    }
    assert moved == {
        "none": set(),
        **{name: {name} for name in OPTIONAL_GROUPS},
        "field": set(OPTIONAL_GROUPS),
        "all": set(suite.catalogue.names),
    }
    assert len({c.digest for c in suite.frozen.values()}) == len(suite.columns)


def test_ground_has_named_terrains_under_a_robot_that_goes_straight_on():
    suite = load_suite("ground")
    for name, column in suite.frozen.items():
        assert (column.commands == (0.5, 0.0, 0.0)).all()
        kind, _, size = name.partition("-")
        pool = column.scenarios(2).pool
        patch, found = TERRAIN.patches[pool.patch[1]]
        if name == "none":
            assert column.robot.ground is FLAT
            continue
        wanted = {"ramp": "slope", "rubble": "noise"}.get(kind, kind)
        scale = math.radians(1.0) if kind == "ramp" else 0.01
        assert (patch.name, found) == (
            wanted,
            pytest.approx(float(size) * scale, abs=1e-4),
        )
    assert len({c.digest for c in suite.frozen.values()}) == len(suite.columns)


def test_the_ground_is_part_of_the_hash(monkeypatch):
    stairs = load_suite("ground").frozen["stairs-8"].digest
    flat = load_suite("ground").frozen["none"].digest
    monkeypatch.setitem(TERRAIN.__dict__, "digest", "other heights")
    assert load_suite("ground").frozen["stairs-8"].digest != stairs
    assert load_suite("ground").frozen["none"].digest == flat


def test_draws_fill_the_range():
    column = load_suite("ood", 1.0).frozen["mass"]
    mass = column.instances["mass.scale"]
    assert 0.4 <= mass.min() < 0.42 and 4.98 < mass.max() <= 5.0
    # The same place of each column's range.
    others = load_suite("ood", 1.0).frozen["com"].instances["mass.scale"]
    np.testing.assert_allclose((mass - 0.4) / 4.6, (others - 0.9) / 0.2, atol=1e-9)


def test_compositions_are_the_ten_rows_of_the_paper():
    suite, catalogue = load_suite("compositions"), paper_catalogue()
    assert suite.severity == 1.0
    found = []
    for column in suite.columns:
        moved = {
            name.partition(".")[0]
            for name, p in catalogue.parameters.items()
            if column.spans[name] != (p.baseline,) * p.draws
        }
        for name, p in catalogue.parameters.items():
            if name.partition(".")[0] in moved:
                assert column.spans[name] == (p.limit,) * p.draws
        found.append(moved)
    assert found == [set(), *COMPOSITIONS]


def test_interventions_are_on_go2_at_the_baseline():
    suite = load_suite("interventions")
    assert suite.severity is None and len(suite.columns) == 9
    assert all(column.robot.startswith("go2") for column in suite.columns)
    assert all(column.spans == baseline() for column in suite.columns)
    assert len({column.digest for column in suite.frozen.values()}) == 9


def test_robots_has_every_preset_with_both_kinds_of_motors():
    found = {(c.robot, c.motors) for c in load_suite("robots").columns}
    presets = preset_names()
    assert found == {(p, m) for p in presets for m in ("scaled", "own")}
    assert len(load_suite("robots").columns) == 2 * len(presets)


@pytest.mark.parametrize("name", ["go1", "spot", "anymal_c"])
def test_own_motors_are_the_real_robots(name):
    suite = load_suite("robots")
    own = suite.frozen[f"{name}-own"]
    robot, pool = own.robot, own.scenarios(3).pool
    assert "actuation.stiffness" not in own.instances
    gains = pool.fields["actuator_gainprm"][:, :, 0]
    for i in range(3):
        np.testing.assert_array_equal(pool.effort[i], robot.torque_limit_nm)
        np.testing.assert_array_equal(
            pool.velocity_limit[i], robot.velocity_limit_rad_s
        )
        np.testing.assert_array_equal(gains[i], robot.stiffness_nm_rad)
        damping = -pool.fields["actuator_biasprm"][i, :, 2]
        np.testing.assert_array_equal(damping, robot.damping_nm_s_rad)
    scaled = suite.frozen[name].scenarios(3).pool
    assert not np.allclose(scaled.fields["actuator_gainprm"][:, :, 0], gains)


LEG = """
<body name="{leg}_hip" pos="{x} {y} 0"><joint name="{leg}_hip_joint" axis="1 0 0"/>
 <inertial pos="0 0 0" mass="0.5" diaginertia="0.001 0.001 0.001"/>
 <body name="{leg}_thigh" pos="0 {z} 0"><joint name="{leg}_thigh_joint" axis="0 1 0"/>
  <inertial pos="0 0 -0.1" mass="0.5" diaginertia="0.001 0.001 0.001"/>
  <body name="{leg}_calf" pos="0 0 -0.2"><joint name="{leg}_calf_joint" axis="0 1 0"/>
   <inertial pos="0 0 -0.1" mass="0.2" diaginertia="0.001 0.001 0.001"/>
   <geom name="{leg}_foot" pos="0 0 -0.2" GEOM/></body></body></body>
"""
LEGS = "".join(
    LEG.format(leg=leg, x=x, y=y, z=y)
    for leg, x, y in (
        *(("FL", 0.2, 0.1), ("FR", 0.2, -0.1)),
        *(("RL", -0.2, 0.1), ("RR", -0.2, -0.1)),
    )
)
TINY_DOG = f"""
<mujoco><worldbody><body name="trunk" pos="0 0 0.4"><freejoint/>
<inertial pos="0 0 0" mass="8" diaginertia="0.1 0.1 0.1"/>
<geom type="box" size="0.2 0.1 0.05"/>{LEGS}</body></worldbody></mujoco>
"""

OWN = (
    "<option gravity='0 0 -3'/>",
    "<option density='1.2'/>",
    "<option><flag contact='disable'/></option>",
)
"""What a file may say of the world beside its robot: ours takes its place."""


def test_groups_with_a_plus_between_them_are_a_column_of_their_own():
    suite = load_suite("ood", 0.5)
    chosen = suite.choose(["mass+com", "mass", "com"])
    assert [*chosen.frozen] == ["mass", "com", "mass+com"]
    assert chosen.digest == suite.digest
    both, alone = chosen.frozen["mass+com"].instances, chosen.frozen["mass"].instances
    assert (both["mass.scale"] == alone["mass.scale"]).all()
    assert (both["com.offset"] == chosen.frozen["com"].instances["com.offset"]).all()
    assert (both["contact.static_friction"] == alone["contact.static_friction"]).all()


@pytest.mark.parametrize("name", ["mass+co", "mass+", "+"])
def test_groups_that_there_are_not_are_no_column(name):
    with pytest.raises(InputError, match="unknown column"):
        load_suite("ood", 0.5).choose([name])
    with pytest.raises(InputError, match="unknown column"):
        load_suite("robots").choose(["mass+com"])
