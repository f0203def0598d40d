"""What a robot's file holds besides the robot: left out and said, or refused."""

from pathlib import Path

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from horizon_rl.cli.robots import RobotsCmd, run  # noqa: E402  Needs MuJoCo.
from horizon_rl.robots import (  # noqa: E402
    FLAT,
    TERRAIN,
    build_robot,
    load_mjcf,
    load_preset,
)
from horizon_rl.support.errors import InputError  # noqa: E402

OWN = (Path(__file__).parents[2] / "examples/own_robot.xml").read_text()
WORLD, END, TRUNK = "<worldbody>", "</mujoco>", '<geom type="box" size="0.24'
TRUNK_BODY = '<body name="trunk" '
TOE, JOINT, FREE = '<geom name="lf_toe" class', 'armature="0.008"', "<freejoint/>"
HFIELD = '<asset><hfield name="h" nrow="2" ncol="2" size="5 5 0.1 0.1"/></asset>'
TENDON = (
    '<tendon><fixed name="t" {}><joint joint="left_front_knee" coef="1"/>'
    '<joint joint="left_front_hip" coef="-1"/></fixed></tendon></mujoco>'
)
BALL = '<body pos="3 0 1"><freejoint/><geom type="sphere" size="0.1"/></body>'


@pytest.fixture
def changed(tmp_path):
    """A function that saves the example's robot with texts replaced."""

    def save(**texts):
        text = OWN
        for old, new in texts.items():
            old = globals()[old]
            assert old in text
            text = text.replace(old, new, 1)
        (tmp_path / "robot.xml").write_text(text)
        return tmp_path / "robot.xml"

    return save


@pytest.mark.parametrize("ground", [FLAT, TERRAIN], ids=["plane", "terrain"])
@pytest.mark.parametrize(
    "texts",
    [
        {"TRUNK": '<geom name="floor" type="box" size="0.24'},
        {
            "TOE": "<geom class",
            "TRUNK": '<geom name="FL_foot_geom" type="box" size="0.24',
        },
        {
            "WORLD": '<asset><texture name="ground" builtin="flat" width="8" height="8"/>'
            '<texture name="sky" type="skybox" builtin="flat" width="8" height="8"/>'
            '<material name="ground" texture="ground"/></asset><worldbody>'
        },
    ],
    ids=["floor", "foot", "looks"],
)
def test_a_robot_may_use_our_names(texts, ground, changed):
    robot = load_mjcf(changed(**texts), ground=ground)
    model = robot.model
    assert model.geom_bodyid[model.geom("floor").id] == 0
    assert model.geom_contype[model.geom("floor").id] == 1
    assert (model.geom_type[robot.foot_geom_ids] == mujoco.mjtGeom.mjGEOM_SPHERE).all()


@pytest.mark.parametrize("ground", [FLAT, TERRAIN], ids=["plane", "terrain"])
def test_obstacles_make_way_for_our_ground(ground, changed):
    scene = (
        f'{HFIELD}<worldbody><geom name="floor" type="hfield" hfield="h"/>'
        '<body pos="1 0 0"><geom type="box" size="0.3 1 0.1"/></body>'
        '<geom type="box" size="0.3 1 0.2" pos="2 0 0"/>'
        '<geom type="box" size="1 1 1" contype="0" conaffinity="0"/>'
    )
    robot = load_mjcf(changed(WORLD=scene), ground=ground)
    model = robot.model
    around = model.geom_bodyid == 0
    assert around.sum() == 1 and model.geom("floor").contype == 1
    assert ground == FLAT or model.hfield(0).name == "patch0"
    assert robot.left_out == ("solid geoms around it: 1 hfield, 2 box",)


@pytest.mark.parametrize("ground", [FLAT, TERRAIN], ids=["plane", "terrain"])
def test_our_physics_takes_the_place_of_the_files(ground, changed, capsys):
    air = '<option gravity="0 0 -1.62" wind="5 0 0" density="1.2" viscosity="0.1">'
    flags = '<flag contact="disable" eulerdamp="disable" multiccd="enable"/></option>'
    texts = {"WORLD": f"{air}{flags}<worldbody>", "JOINT": 'stiffness="50"'}
    path = changed(**texts)
    robot = load_mjcf(path, ground=ground)
    ours = build_robot(load_preset("go2"), ground)
    for name in dir(ours.model.opt):
        if not name.startswith("_") and name != "timestep":
            found, usual = (getattr(r.model.opt, name) for r in (robot, ours))
            assert np.array_equal(found, usual), name
    assert not robot.model.jnt_stiffness.any()
    run(RobotsCmd(name=(str(path),)))
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "left out gravity 0 0 -1.62; wind 5 0 0; density 1.2; viscosity 0.1; "
        "joint springs up to 50 N m/rad" in said
    )


@pytest.mark.parametrize(
    ("texts", "field", "said"),
    [
        (
            {"TRUNK_BODY": '<body name="trunk" gravcomp="1" '},
            "body_gravcomp",
            "gravity compensation up to 1",
        ),
        (
            {"JOINT": 'stiffness="0 30 0"'},
            "jnt_stiffnesspoly",
            "polynomial joint springs up to 30",
        ),
        (
            {"TOE": '<geom name="lf_toe" adhesion="9" class'},
            "geom_adhesion",
            "adhesion up to 9 N",
        ),
        (
            {"TOE": '<geom name="lf_toe" surfacevel="0.5 0 0 0 0 0" class'},
            "geom_surfacevel",
            "surface velocities up to 0.5",
        ),
    ],
    ids=["weightless", "springs", "sticky", "tracks"],
)
def test_what_moves_a_robot_in_its_file_is_left_out_and_said(
    texts, field, said, changed
):
    path = changed(**texts)
    assert getattr(mujoco.MjModel.from_xml_path(str(path)), field).any()
    robot = load_mjcf(path)
    assert not getattr(robot.model, field).any()
    assert robot.left_out == (said,)


def test_nothing_is_said_of_a_robot_alone(changed, capsys):
    path = changed()
    assert load_mjcf(path).left_out == ()
    run(RobotsCmd(name=(str(path),)))
    assert "left out" not in capsys.readouterr().out


def test_a_plane_that_is_only_seen_carries_no_robot(changed, standing, drive):
    seen = '<geom type="plane" size="1 1 1" contype="0" conaffinity="0"/>'
    robot = load_mjcf(changed(WORLD=WORLD + seen))
    data = standing(robot)
    drive(robot, data, seconds=1.0, scale=2.0)
    assert data.qpos[2] == pytest.approx(robot.standing_height_m, abs=0.02)


def test_pairs_of_geoms_do_not_touch(changed):
    pair = '<contact><pair geom1="lf_toe" geom2="rf_toe"/></contact></mujoco>'
    assert load_mjcf(changed(END=pair)).model.npair == 0


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (
            {"END": '<equality><weld name="w" body1="trunk"/></equality></mujoco>'},
            "equality 'w' .weld of 'trunk' and ''. ties the robot",
        ),
        (
            {
                "END": '<equality><joint name="belt" joint1="left_front_knee" '
                'joint2="left_front_hip"/></equality></mujoco>'
            },
            "'belt' .joint of 'left_front_knee' and 'left_front_hip'. ties",
        ),
        (
            {"WORLD": '<worldbody><geom type="plane" size="1 1 1" euler="0 0.2 0"/>'},
            r"level and at z = 0, found 1 planes.*normals \[\[0.199, 0.0, 0.98\]\]",
        ),
        (
            {
                "WORLD": '<worldbody><body pos="0 0 -0.1"><geom type="plane" '
                'size="1 1 1"/></body>'
            },
            r"level and at z = 0, found 1 planes, at z = \[-0.1\]",
        ),
        (
            {"FREE": "", "WORLD": f"<worldbody>{BALL}"},
            "freejoint moves '', which does not carry joint left_front_abad",
        ),
    ],
    ids=["weld", "belt", "tilted", "raised", "fixed"],
)
def test_what_keeps_a_robot_from_moving_freely_is_refused(texts, message, changed):
    with pytest.raises(InputError, match=message):
        load_mjcf(changed(**texts))


@pytest.mark.parametrize(
    ("attributes", "effect"),
    [
        ('stiffness="100"', "stiffness"),
        ('stiffness="0 100 0"', "stiffness"),
        ('damping="5"', "damping"),
        ('frictionloss="1"', "frictionloss"),
        ('armature="0.1"', "armature"),
        ('range="-0.1 0.1"', "limited"),
    ],
)
def test_a_tendon_that_acts_is_refused(attributes, effect, changed):
    with pytest.raises(InputError, match=f"tendon 't' .{effect}. ties the robot"):
        load_mjcf(changed(END=TENDON.format(attributes)))


@pytest.mark.parametrize(
    "end",
    [
        '<equality><weld body1="trunk" active="false"/></equality></mujoco>',
        TENDON.format(""),
    ],
    ids=["weld", "tendon"],
)
def test_a_tie_that_is_off_does_not_matter(end, changed):
    assert load_mjcf(changed(END=end)).left_out == ()


def test_a_small_geom_at_the_end_of_a_calf_is_a_foot(changed, tmp_path):
    text = changed(TOE='<geom type="box" mass="0.06" class').read_text()
    text = text.replace('class="toe" pos', 'size="0.02 0.03 0.01" pos', 1)
    (tmp_path / "robot.xml").write_text(text)
    robot = load_mjcf(tmp_path / "robot.xml")
    assert robot.model.geom_type[robot.foot_geom_ids[0]] == mujoco.mjtGeom.mjGEOM_BOX
    assert robot.calf_length_m == pytest.approx(0.23)


def test_a_shank_is_no_foot(changed, tmp_path):
    text = changed(TOE='<geom contype="0" conaffinity="0" class').read_text()
    solid = 'fromto="0 0 0 0 0 -0.22" mass="0.2"'
    text = text.replace(f'{solid} contype="0" conaffinity="0"', solid, 1)
    (tmp_path / "robot.xml").write_text(text)
    with pytest.raises(InputError, match="or a small geom at the end.*capsule of lf_"):
        load_mjcf(tmp_path / "robot.xml")
