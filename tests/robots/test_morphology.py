"""Links, legs and stances, against numbers worked out by hand."""

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from horizon_rl.robots import JOINT_NAMES, Link, Payload, load_preset
from horizon_rl.robots.morphology import rest_on_feet, support_margin_m
from horizon_rl.support.errors import InputError


def ball(mass_kg, com_m, radius_m=0.1):
    moment = 0.4 * mass_kg * radius_m**2
    inertia = (moment, moment, moment, 0.0, 0.0, 0.0)
    return Link(mass_kg=mass_kg, com_m=com_m, inertia_kg_m2=inertia)


def test_joints_go_leg_by_leg_from_the_hip_out():
    assert JOINT_NAMES[:4] == ("FL_hip", "FL_thigh", "FL_calf", "FR_hip")
    assert JOINT_NAMES[6:] == (
        *("RL_hip", "RL_thigh", "RL_calf"),
        *("RR_hip", "RR_thigh", "RR_calf"),
    )


def test_welded_balls_obey_the_parallel_axis_theorem():
    # 1 kg at z = 0 and 3 kg at z = -0.4: centre at -0.3, at 0.3 m and 0.1 m from them.
    welded = ball(1.0, (0.0, 0.0, 0.0)).joined(ball(3.0, (0.0, 0.0, -0.4)))
    own = 0.4 * 4.0 * 0.1**2
    across = own + 1.0 * 0.3**2 + 3.0 * 0.1**2
    assert welded.mass_kg == 4.0
    assert welded.com_m == pytest.approx((0.0, 0.0, -0.3))
    expected = (across, across, own, 0.0, 0.0, 0.0)
    assert welded.inertia_kg_m2 == pytest.approx(expected)


@pytest.mark.parametrize("signs", [(1.0, -1.0, 1.0), (-1.0, 1.0, 1.0)])
def test_a_mirrored_link_is_made_of_mirrored_balls(signs):
    near, far = np.array([0.0, 0.1, 0.0]), np.array([0.2, 0.3, -0.4])
    mirrored = ball(1.0, near).joined(ball(3.0, far)).mirrored(signs)
    built = ball(1.0, near * signs).joined(ball(3.0, far * signs))
    assert mirrored.com_m == pytest.approx(built.com_m)
    assert mirrored.inertia_kg_m2 == pytest.approx(built.inertia_kg_m2)
    assert abs(built.inertia_kg_m2[3]) > 0.01, "else the sign would not matter"


def test_a_reversed_leg_bends_the_other_way_over_the_same_foot():
    leg = load_preset("anymal_c").rear
    reversed_leg = leg.reversed()
    foot = leg.frames(leg.default_pose_rad)[3][0]
    reversed_foot = reversed_leg.frames(reversed_leg.default_pose_rad)[3][0]
    assert leg.default_pose_rad[2] > 0.0 > reversed_leg.default_pose_rad[2]
    assert reversed_foot == pytest.approx(foot)
    assert reversed_leg.reversed().default_pose_rad == pytest.approx(
        leg.default_pose_rad
    )


@pytest.mark.parametrize(
    ("mass", "inertia"),
    [
        (0.0, (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)),
        (math.nan, (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)),
        (1.0, (1.0, 1.0, 2.1, 0.0, 0.0, 0.0)),  # 1 + 1 < 2.1: no body is so flat.
        (1.0, (1.0, 1.0, 1.0, 1.1, 0.0, 0.0)),  # Not positive definite.
    ],
)
def test_impossible_links_are_refused(mass, inertia):
    with pytest.raises(InputError):
        Link(mass_kg=mass, com_m=(0.0, 0.0, 0.0), inertia_kg_m2=inertia)


def test_default_angle_outside_its_range_is_refused():
    leg = load_preset("go2").front
    with pytest.raises(InputError, match=r"angles \(0.0, 0.8, -3.0\) in "):
        replace(leg, default_pose_rad=(0.0, 0.8, -3.0))


@pytest.mark.parametrize(("mass", "length"), [(0.0, 0.1), (math.nan, 0.1), (5.0, 0.05)])
def test_payloads_that_cannot_swing_are_refused(mass, length):
    with pytest.raises(InputError, match="a payload needs"):
        Payload(mass_kg=mass, attach_m=(0.0, 0.0, -0.1), link_length_m=length)


def test_locking_an_unknown_joint_suggests_the_nearest():
    with pytest.raises(InputError, match="unknown joint 'FL_knee'.*Accepted: FL_hip"):
        replace(load_preset("go2"), locked=(("FL_knee", -1.5),))


def test_right_legs_mirror_left_ones():
    left, right, *_ = load_preset("laikago").legs
    left_foot = left.frames((0.3, 0.7, -1.2))[3][0]
    right_foot = right.frames((-0.3, 0.7, -1.2))[3][0]
    assert right_foot == pytest.approx(left_foot * (1.0, -1.0, 1.0))
    assert left.joint_range_rad[0] == (-0.8726646, 1.0471976)
    assert right.joint_range_rad[0] == (-1.0471976, 0.8726646)
    assert right.thigh.com_m[1] == -left.thigh.com_m[1]


def test_a_bent_leg_follows_the_facts_formula():
    # Thigh back by 90 degrees, calf forward by 90: knee 0.213 behind the thigh joint,
    # foot straight below the knee.
    foot = load_preset("go2").front.frames((0.0, math.pi / 2, -math.pi / 2))[3][0]
    assert foot == pytest.approx((0.1934 - 0.213, 0.0465 + 0.0955, -0.213))


def feet_at(front_xz, rear_xz):
    (front_x, front_z), (rear_x, rear_z) = front_xz, rear_xz
    front = [(front_x, y, front_z) for y in (0.1, -0.1)]
    return np.array(front + [(rear_x, y, rear_z) for y in (0.1, -0.1)])


def test_feet_of_one_height_give_a_level_trunk():
    stance = rest_on_feet(feet_at((0.2, -0.3), (-0.2, -0.3)), np.full(4, 0.02))
    assert stance.height_m == pytest.approx(0.32)
    assert stance.pitch_rad == pytest.approx(0.0)


def test_longer_front_legs_raise_the_nose():
    # Front feet 0.3 m lower over 0.4 m: a 3-4-5 triangle. The trunk's origin lies 0.3 m
    # above the rear feet, measured along the trunk, so 0.3 * 4/5 above the slope.
    stance = rest_on_feet(feet_at((0.4, -0.6), (0.0, -0.3)), np.full(4, 0.02))
    assert stance.pitch_rad == pytest.approx(-math.atan2(0.3, 0.4))
    assert stance.height_m == pytest.approx(0.3 * 0.8 + 0.02)


def test_support_margin_is_the_distance_to_the_nearest_edge():
    feet = np.array([(0.3, 0.2), (0.3, -0.2), (-0.3, 0.2), (-0.3, -0.2)])
    assert support_margin_m(feet, np.array([0.0, 0.05])) == pytest.approx(0.15)
    assert support_margin_m(feet, np.array([0.35, 0.0])) == pytest.approx(-0.05)


def test_facts_load_without_mujoco():
    code = (
        "import sys; sys.modules['mujoco'] = None; from horizon_rl import robots; "
        "print(robots.load_body('go2+stilts').total_mass_kg)\n"
        "try: robots.build_robot\n"
        "except robots.InputError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    mass, message = done.stdout.splitlines()
    assert float(mass) > 15.2, done.stderr
    assert "pip install -c constraints.txt -e '.[train]'" in message
