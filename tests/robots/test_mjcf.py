"""Robots that others modelled: found, mapped, or refused with what was found."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from canonical import canonical_position
from horizon_rl.robots import (
    JOINT_NAMES,
    LEG_NAMES,
    build_robot,
    build_spec,
    load_mjcf,
    load_preset,
)
from horizon_rl.support.errors import InputError

mujoco = pytest.importorskip("mujoco")

from horizon_rl.robots.joint_map import leg_of  # noqa: E402  Needs MuJoCo.

ANYMAL_LEGS = {"FL": "LF", "FR": "RF", "RL": "LH", "RR": "RH"}
ANYMAL_KINDS = {"hip": "HAA", "thigh": "HFE", "calf": "KFE"}


def foreign_spec(preset="anymal_c"):
    """One of our robots as others might have written it: no floor, motors, keyframe."""
    spec = build_spec(load_preset(preset))
    others = (*spec.actuators, *spec.sensors, *spec.keys, *spec.sites, *spec.lights)
    for element in (*others, spec.geom("floor")):
        spec.delete(element)
    for name in JOINT_NAMES:
        leg, kind = name.split("_")
        spec.joint(name).name = f"{ANYMAL_LEGS[leg]}_{ANYMAL_KINDS[kind]}"
    return spec


def saved(spec, folder):
    spec.compile()
    path = folder / "robot.xml"
    path.write_text(spec.to_xml())
    return path


def mass_matrix(robot, pose_rad):
    """The mass matrix in canonical order and signs, trunk level."""
    data = mujoco.MjData(robot.model)
    data.qpos[:7] = (0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0)
    data.qpos[robot.qpos_adr] = robot.source_position(pose_rad)
    mujoco.mj_forward(robot.model, data)
    matrix = np.zeros((robot.model.nv, robot.model.nv))
    mujoco.mj_fullM(robot.model, data, matrix)
    order = np.concatenate([np.arange(6), robot.dof_adr])
    sign = np.concatenate([np.ones(6), robot.joint_sign])
    return matrix[np.ix_(order, order)] * np.outer(sign, sign)


def difference(one, other):
    """Largest difference of two mass matrices, relative to the diagonal."""
    scale = np.sqrt(np.outer(np.diag(other), np.diag(other)))
    return np.abs((one - other) / scale).max()


def some_poses(preset):
    rng = np.random.default_rng(0)
    return [load_preset(preset).default_pose_rad, *rng.uniform(-0.8, 0.8, (5, 12))]


def test_a1_file_has_the_mass_matrix_of_our_a1(shared):
    theirs = load_mjcf(shared / "fixtures/unitree_a1/a1_nomesh.xml")
    ours = build_robot(load_preset("a1"))
    for pose in some_poses("a1"):
        error = difference(mass_matrix(theirs, pose), mass_matrix(ours, pose))
        assert error < 0.01, f"mass matrices differ by {error:.2e}"


def test_a1_file_is_read_as_the_robot_it_is(shared):
    robot = load_mjcf(shared / "fixtures/unitree_a1/a1_nomesh.xml")
    names = [robot.model.joint(i).name for i in robot.model.actuator_trnid[:, 0]]
    assert names == [f"{name}_joint" for name in JOINT_NAMES]
    assert robot.qpos_adr[:6].tolist() == [
        10,
        11,
        12,
        7,
        8,
        9,
    ]  # The file has FR first.
    assert robot.total_mass_kg == pytest.approx(12.453)
    assert (robot.thigh_length_m, robot.calf_length_m) == pytest.approx((0.2, 0.2))
    assert robot.default_pose_rad == pytest.approx(np.tile((0.0, 0.9, -1.8), 4))
    assert robot.standing_height_m == pytest.approx(0.268644, abs=1e-6)
    assert set(robot.torque_limit_nm) == {33.5}
    assert robot.stiffness_nm_rad[:3].tolist() == [100.0, 100.0, 100.0]
    assert robot.damping_nm_s_rad[:3].tolist() == [1.0, 2.0, 2.0]
    assert not robot.model.dof_damping.any()
    assert robot.model.opt.timestep == 0.005


def test_an_imported_robot_stands_on_its_feet(shared, standing, drive):
    robot = load_mjcf(shared / "fixtures/unitree_a1/a1_nomesh.xml")
    data = standing(robot)
    drive(robot, data, seconds=2.0, scale=2.0)
    force = data.sensordata[robot.foot_sensor_adr]
    assert force.sum() == pytest.approx(robot.total_mass_kg * 9.81, rel=0.01)
    assert force.min() > 10.0
    assert data.sensordata[robot.trunk_sensor_adr] == 0.0


def test_anymal_names_are_understood(tmp_path):
    robot = load_mjcf(saved(foreign_spec(), tmp_path))
    ours = build_robot(load_preset("anymal_c"))
    assert robot.joint_sign.tolist() == [1.0] * 12
    assert robot.joint_offset_rad == pytest.approx(np.zeros(12), abs=1e-9)
    assert robot.leg_length_m == pytest.approx(ours.leg_length_m)
    for pose in some_poses("anymal_c"):
        # The XML has six digits.
        assert difference(mass_matrix(robot, pose), mass_matrix(ours, pose)) < 1e-5


def test_flipped_axes_and_bent_zero_poses_are_mapped(tmp_path, standing):
    spec = foreign_spec("go2")
    flipped = [spec.joint(name) for name in ("RF_HAA", "LF_KFE", "RH_HFE")]
    for joint in flipped:
        joint.axis = -joint.axis
        joint.range = -joint.range[::-1]
    # LH's calf modelled bent back by 0.3 rad, RF's thigh counted from 0.2.
    spec.body("RL_calf").quat = (math.cos(0.15), 0.0, math.sin(-0.15), 0.0)
    spec.joint("LH_KFE").range = np.array(spec.joint("LH_KFE").range) + 0.3
    spec.joint("RF_HFE").ref = 0.2
    spec.joint("RF_HFE").range = np.array(spec.joint("RF_HFE").range) + 0.2
    pose = load_preset("go2").default_pose_rad
    robot = load_mjcf(saved(spec, tmp_path), default_pose_rad=pose)
    ours = build_robot(load_preset("go2"))
    names = [JOINT_NAMES[i] for i in np.flatnonzero(robot.joint_sign < 0.0)]
    assert names == ["FL_calf", "FR_hip", "RR_thigh"]
    offsets = dict(zip(JOINT_NAMES, robot.joint_offset_rad, strict=True))
    assert offsets["RL_calf"] == pytest.approx(-0.3)
    assert offsets["FR_thigh"] == pytest.approx(-0.2)
    assert robot.standing_height_m == pytest.approx(ours.standing_height_m)
    for some in some_poses("go2"):
        assert difference(mass_matrix(robot, some), mass_matrix(ours, some)) < 1e-5
    data = standing(robot)
    assert canonical_position(robot, data.qpos) == pytest.approx(pose)


def test_motors_push_in_the_canonical_direction(tmp_path):
    spec = foreign_spec("go2")
    spec.joint("LF_KFE").axis = (0.0, -1.0, 0.0)
    spec.joint("LF_KFE").range = (0.83776, 2.7227)
    robot = load_mjcf(saved(spec, tmp_path))
    data = mujoco.MjData(robot.model)
    data.ctrl[JOINT_NAMES.index("FL_calf")] = 1.0
    mujoco.mj_forward(robot.model, data)
    assert robot.joint_sign[2] * data.qacc_smooth[robot.dof_adr[2]] > 0.0
    assert data.qfrc_actuator[robot.dof_adr[2]] == -1.0


def test_an_explicit_map_serves_names_that_say_nothing(tmp_path):
    spec = foreign_spec("go2")
    joints = {}
    for number, name in enumerate(JOINT_NAMES):
        leg, kind = name.split("_")
        joint = spec.joint(f"{ANYMAL_LEGS[leg]}_{ANYMAL_KINDS[kind]}")
        joint.name = joints[name] = f"motor{number}"
    path = saved(spec, tmp_path)
    with pytest.raises(InputError, match="has motor0, motor1.*mapped are none"):
        load_mjcf(path)
    saved_map = tmp_path / "map.json"
    saved_map.write_text(json.dumps(joints))
    for given in (joints, saved_map, str(saved_map)):
        robot = load_mjcf(path, joints=given)
        assert robot.qpos_adr.tolist() == list(range(7, 19))
    with pytest.raises(InputError, match="mapped are hip = motor0, FL_thigh = motor1"):
        load_mjcf(path, joints={"hip": "motor0"} | dict(list(joints.items())[1:]))
    with pytest.raises(InputError, match="mapped are FL_hip = motor99"):
        load_mjcf(path, joints=joints | {"FL_hip": "motor99"})


def test_a_map_that_swaps_thigh_and_calf_is_refused(tmp_path):
    spec = foreign_spec("go2")
    path = saved(spec, tmp_path)
    joints = {
        f"{leg}_{kind}": f"{ANYMAL_LEGS[leg]}_{ANYMAL_KINDS[kind]}"
        for leg in LEG_NAMES
        for kind in ANYMAL_KINDS
    }
    assert load_mjcf(path, joints=joints).joint_sign.tolist() == [1.0] * 12
    joints |= {"RL_thigh": "LH_KFE", "RL_calf": "LH_HFE"}
    with pytest.raises(InputError, match="calf must come below.*LH_KFE as RL_thigh"):
        load_mjcf(path, joints=joints)


def test_a_default_pose_is_guessed_where_the_file_gives_none(tmp_path, standing):
    robot = load_mjcf(saved(foreign_spec("go2"), tmp_path))
    assert robot.default_pose_rad == pytest.approx(np.tile((0.0, 0.8, -1.5), 4))
    data = standing(robot)
    radius = robot.model.geom_size[robot.foot_geom_ids, 0]
    gap = data.geom_xpos[robot.foot_geom_ids, 2] - radius
    assert np.abs(gap).max() < 1e-9, f"feet off the ground by {gap} m"


def test_a_scene_with_its_own_floor_gets_no_second(tmp_path):
    spec = foreign_spec("go2")
    plane = mujoco.mjtGeom.mjGEOM_PLANE
    spec.worldbody.add_geom(name="mine", type=plane, size=(5.0, 5.0, 0.1))
    model = load_mjcf(saved(spec, tmp_path)).model
    assert (model.geom_type == plane).sum() == 1


@pytest.mark.parametrize(
    ("name", "leg"),
    [
        ("FL_hip_joint", "FL"),
        ("RH_KFE", "RR"),
        ("hl.kn", "RL"),
        ("abduction_front_right", "FR"),
        ("knee_hind_left", "RL"),
        ("floor", None),
        ("front_wheel", None),
    ],
)
def test_legs_are_read_from_joint_names(name, leg):
    assert leg_of(name) == leg


def drop_calf(spec):
    spec.delete(spec.joint("RH_KFE"))


def drop_foot(spec):
    spec.delete(spec.geom("RR_foot"))


def turn_hip(spec):
    spec.joint("LF_HAA").axis = (0.0, 0.0, 1.0)


def face_backward(spec):
    for name in LEG_NAMES:
        spec.body(f"{name}_hip").pos = -spec.body(f"{name}_hip").pos


def nail_down(spec):
    spec.delete(spec.joint("root"))


def name_badly(spec):
    spec.joint("LF_HAA").name = "RF_extra"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (drop_calf, "1 freejoints and 11 hinges of 12 joints: LF_HAA, .*RH_HFE$"),
        (drop_foot, "leg RR has no foot: needs, below the knee.* found none"),
        (
            turn_hip,
            r"about x at the hip.*LF_HAA as FL_hip about \[0.0, 0.0, 1.0\]",
        ),
        (face_backward, "front hips must lie at larger x than rear"),
        (nail_down, "needs one floating base .*found 0 freejoints"),
        (name_badly, "mapped are FL_hip = LF_HFE.*; a joint's name must hold its leg"),
    ],
)
def test_a_robot_of_another_kind_is_refused(damage, message, tmp_path):
    spec = foreign_spec("go2")
    damage(spec)
    path = saved(spec, tmp_path)
    with pytest.raises(InputError, match=message) as caught:
        load_mjcf(path)
    assert str(caught.value).startswith(str(path))


def test_a1_without_a_foot_is_refused(shared, tmp_path):
    text = (shared / "fixtures/unitree_a1/a1_nomesh.xml").read_text()
    path = tmp_path / "a1.xml"
    path.write_text(re.sub(r'<geom class="foot" />', "", text, count=1))
    with pytest.raises(
        InputError, match="leg FR has no foot.*found capsule of FR_calf, capsule of"
    ):
        load_mjcf(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "MuJoCo cannot load it: .*empty"),
        ("<mujoco><worldbody>", "MuJoCo cannot load it: XML parse error"),
        ("just text", "MuJoCo cannot load it"),
        ("<mujoco/>", "needs one floating base"),
        (
            '<mujoco><asset><mesh name="m" file="gone.stl"/></asset></mujoco>',
            "MuJoCo cannot load it: .*gone.stl",
        ),
    ],
)
def test_a_file_that_is_no_robot_is_refused(text, message, tmp_path):
    path = tmp_path / "robot.xml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_mjcf(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('pos="0 0 -0.23">', 'pos="-1e308 0 -0.23">'),
        ('pos="0 0 -0.23">', 'pos="0 0 9223372036854775808">'),
        ('size="0.02"', 'size="10"'),
        ('name="lf_toe" class="toe"', 'name="lf_toe" class="toe" size="3"'),
        ('name="lh_toe" class="toe"', 'name="lh_toe" class="toe" size="1.2"'),
    ],
)
def test_a_robot_out_of_all_proportion_is_refused(old, new, tmp_path):
    text = (Path(__file__).parents[2] / "examples/own_robot.xml").read_text()
    assert old in text
    (tmp_path / "robot.xml").write_text(text.replace(old, new))
    with pytest.raises(
        InputError, match="the length of a|no pose to stand in|on one plane"
    ):
        load_mjcf(tmp_path / "robot.xml")


def test_names_that_are_no_text_are_refused(tmp_path):
    text = (Path(__file__).parents[2] / "examples/own_robot.xml").read_bytes()
    (tmp_path / "robot.xml").write_bytes(text.replace(b"lf_", b"lf\xd6"))
    with pytest.raises(InputError, match="robot.xml: .*utf-8"):
        load_mjcf(tmp_path / "robot.xml")


def test_a_path_that_is_no_file_is_refused(tmp_path):
    for path, why in ((tmp_path, "a dir"), (tmp_path / "gone.xml", "no such file")):
        with pytest.raises(InputError, match=f"{why}.*; needs an MJCF file"):
            load_mjcf(path)


def test_a_default_pose_outside_the_joint_ranges_is_refused(tmp_path):
    path = saved(foreign_spec("go2"), tmp_path)
    with pytest.raises(
        InputError, match=r"0.8, -3.0.* is not 12 angles .*FL_calf -2.723..-0.838"
    ):
        load_mjcf(path, default_pose_rad=np.tile((0.0, 0.8, -3.0), 4))
    with pytest.raises(InputError, match=r"\[0.0, 0.8, -1.5\] is not 12 angles"):
        load_mjcf(path, default_pose_rad=(0.0, 0.8, -1.5))
