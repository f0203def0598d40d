"""A pose to stand in, for robots whose files tell none, or one that is none."""

from pathlib import Path

import numpy as np
import pytest

from canonical import canonical_position
from horizon_rl.robots import load_mjcf
from horizon_rl.support.errors import InputError

mujoco = pytest.importorskip("mujoco")

from horizon_rl.robots.standing import find_pose, turns_into  # noqa: E402

FIXTURE = Path(__file__).parents[1] / "fixtures/backward_axes.xml"
USUAL = np.tile((0.0, 0.8, -1.5), 4)


@pytest.fixture
def changed(tmp_path):
    """A function that saves the fixture, changed."""

    def save(change):
        spec = mujoco.MjSpec.from_file(str(FIXTURE))
        change(spec)
        path = tmp_path / "robot.xml"
        spec.compile()
        path.write_text(spec.to_xml())
        return path

    return save


def joints(spec, kind, legs=("FL", "FR", "RL", "RR")):
    return [spec.joint(f"{leg}_{kind}") for leg in legs]


def test_wide_ranges_about_backward_axes_stand_as_others_do(standing, drive):
    robot = load_mjcf(FIXTURE)
    assert robot.joint_sign.tolist() == [1.0, -1.0, -1.0] * 4
    assert robot.default_pose_rad == pytest.approx(USUAL)
    # 0.21 cos 0.8 + 0.19 cos 0.7, and the foot's radius.
    assert robot.standing_height_m == pytest.approx(0.3116, abs=1e-3)
    assert robot.pose_source == "found by kinematics"
    data = standing(robot)
    drive(robot, data, seconds=2.0, scale=2.0)
    force = data.sensordata[robot.foot_sensor_adr]
    assert force.sum() == pytest.approx(robot.total_mass_kg * 9.81, rel=0.02)
    assert data.sensordata[robot.trunk_sensor_adr] == 0.0


def test_a_keyframe_that_is_no_stance_is_passed_over_and_said_so(changed):
    def fold(spec):
        legs = [0.0, -2.2, 1.3, 0.0, -2.2, 1.3, 0.0, 0.9, 1.3, 0.0, 0.9, 1.3]
        spec.add_key(name="home", qpos=[0, 0, 0.3, 1, 0, 0, 0, *legs])

    robot = load_mjcf(changed(fold))
    assert robot.default_pose_rad == pytest.approx(USUAL)
    assert "not keyframe 'home': FL_thigh would be" in robot.pose_source


def test_a_later_keyframe_that_stands_is_taken(changed):
    def add(spec):
        lying = [0, 0, 0.1, 1, 0, 0, 0, *[0.0, 0.0, -2.9] * 4]
        legs = [0.0, -0.9, 1.7] * 4
        spec.add_key(name="home", qpos=lying)
        spec.add_key(name="up", qpos=[0, 0, 0.3, 1, 0, 0, 0, *legs])

    robot = load_mjcf(changed(add))
    assert robot.default_pose_rad == pytest.approx(np.tile((0.0, 0.9, -1.7), 4))
    assert robot.pose_source == "keyframe 'up'"


def test_knees_bend_the_way_they_can(changed):
    def forward(spec):
        for joint in joints(spec, "knee", ("RL", "RR")):
            joint.range = (-2.7, -0.8)  # About -y: canonical 0.8 to 2.7.

    pose = load_mjcf(changed(forward)).default_pose_rad.reshape(4, 3)
    assert pose[:2] == pytest.approx(USUAL.reshape(4, 3)[:2])
    assert pose[2:] == pytest.approx(-USUAL.reshape(4, 3)[2:])


def test_angles_that_are_counted_from_a_turn_away_are_counted_from_down(
    changed, standing
):
    def shift(spec):
        for joint in joints(spec, "knee"):
            joint.range = (0.8 + 2.0 * np.pi, 2.7 + 2.0 * np.pi)

    robot = load_mjcf(changed(shift))
    assert robot.default_pose_rad == pytest.approx(USUAL)
    data = standing(robot)
    assert data.qpos[robot.qpos_adr[2]] == pytest.approx(1.5 + 2.0 * np.pi)
    assert canonical_position(robot, data.qpos) == pytest.approx(USUAL)


def test_a_leg_that_cannot_take_the_usual_pose_finds_another(changed, standing):
    def limit(spec):
        for joint in joints(spec, "knee"):
            joint.range = (1.7, 2.7)

    robot = load_mjcf(changed(limit))
    thigh, calf = robot.default_pose_rad[1:3]
    assert -2.7 <= calf <= -1.7
    # Below its hip: 0.21 sin(thigh) = 0.19 sin(-thigh - calf).
    assert 0.21 * np.sin(thigh) == pytest.approx(0.19 * np.sin(-thigh - calf))
    data = standing(robot)
    feet = data.geom_xpos[robot.foot_geom_ids]
    hips = data.xanchor[robot.model.dof_jntid[robot.dof_adr[1::3]]]
    assert feet[:, 0] == pytest.approx(hips[:, 0], abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "leg", "limits", "message"),
    [
        (
            "knee",
            "RL",
            (-0.2, 0.3),
            r"RL_calf turns -0.30..0.20 rad, .* needs 0.6\d to 1.9\d rad of either sign",
        ),
        ("hip", "FR", (-3.0, -2.0), r"FR_thigh turns 2.00..3.00 rad, .* of either"),
        (
            "abad",
            "FL",
            (0.6, 1.2),
            r"FL_hip turns 0.60..1.20 rad, .*within 0.3 rad of 0",
        ),
    ],
)
def test_where_no_pose_is_found_the_joint_is_named(changed, kind, leg, limits, message):
    def limit(spec):
        spec.joint(f"{leg}_{kind}").range = limits

    with pytest.raises(InputError, match=f"no pose to stand in: {message}"):
        load_mjcf(changed(limit))


def test_thigh_and_knee_that_do_not_go_together_are_named(changed):
    def limit(spec):
        for joint in joints(spec, "hip"):
            joint.range = (-1.5, -0.2)  # The knee would have to point back,
        for joint in joints(spec, "knee"):
            joint.range = (-2.7, -0.8)  # and points forward.

    with pytest.raises(InputError, match="FL_calf turns .* goes with its FL_thigh"):
        load_mjcf(changed(limit))


def test_a_hull_that_hangs_below_the_feet_is_no_stance(changed):
    def sink(spec):
        spec.geom("hull").size = (0.2, 0.08, 0.4)

    with pytest.raises(InputError, match="'trunk' would be 0.0.* m below the feet"):
        load_mjcf(changed(sink))


def test_a_given_pose_must_stand_too():
    folded = np.tile((0.0, 2.2, -1.3), 4)
    with pytest.raises(InputError, match="given default pose is none .*FL_thigh would"):
        load_mjcf(FIXTURE, default_pose_rad=folded)


def test_the_fewest_turns_are_made():
    pose, low = np.array([0.5, 0.5, 0.5, 0.5]), np.array([-1.0, 4.0, -20.0, 1.0])
    high = np.array([1.0, 8.0, -9.0, 2.0])
    assert turns_into(pose, low, high)[:3].tolist() == [0.0, 1.0, -2.0]
    assert np.isnan(turns_into(pose, low, high)[3])


def test_links_of_any_ratio_put_the_foot_below_the_hip():
    endless = np.full(12, np.inf)
    assert find_pose(0.2, 0.2, -endless, endless) == pytest.approx(USUAL)
    for thigh, calf in ((0.3, 0.15), (0.15, 0.3)):
        _, a, b = find_pose(thigh, calf, -endless, endless)[:3]
        reach = np.hypot(thigh + calf * np.cos(b), calf * np.sin(b))
        assert reach == pytest.approx(0.73 * (thigh + calf))
        assert thigh * np.sin(a) + calf * np.sin(a + b) == pytest.approx(0.0, abs=1e-9)
