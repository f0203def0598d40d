"""Every intervention does what its name says."""

import math

import numpy as np
import pytest

from horizon_rl.robots import (
    INTERVENTIONS,
    JOINT_NAMES,
    build_robot,
    build_spec,
    intervene,
    load_body,
    load_preset,
)
from horizon_rl.support.errors import InputError

mujoco = pytest.importorskip("mujoco")

KNEES = {
    "front-knees-locked": (("FL_calf", "FR_calf"), 1.1 * -1.5),
    "hind-knees-locked": (("RL_calf", "RR_calf"), 0.9 * -1.5),
}
PAYLOADS = [name for name in INTERVENTIONS if "payload" in name]


def test_the_eight_interventions_of_the_design_exist():
    assert set(INTERVENTIONS) == {
        *("front-knees-locked", "hind-knees-locked", "stilts", "hind-stilts"),
        *("payload-3kg", "payload-5kg", "two-payloads", "stilts-and-payloads"),
    }


def test_unknown_intervention_suggests_the_nearest():
    with pytest.raises(InputError, match="did you mean 'stilts'"):
        load_body("go2+stilt")


@pytest.mark.parametrize("name", INTERVENTIONS)
def test_the_policys_interface_and_the_motors_stay(name):
    intact, changed = load_preset("go2"), intervene(load_preset("go2"), name)
    assert changed.name == f"go2+{name}"
    assert changed != intact
    assert changed.torque_limit_nm == intact.torque_limit_nm
    assert changed.body_mass_kg == intact.body_mass_kg
    assert changed.leg_length_m == intact.leg_length_m
    robot = build_robot(changed)
    assert robot.model.nu == 12
    assert robot.qpos_adr.tolist() == list(range(7, 19))
    assert robot.default_pose_rad.tolist() == intact.default_pose_rad.tolist()
    assert robot.model.body_mass.sum() == pytest.approx(changed.total_mass_kg)


@pytest.mark.parametrize("name", INTERVENTIONS)
def test_an_intervened_go2_can_stand(name, standing, drive):
    robot = build_robot(load_body(f"go2+{name}"))
    data = standing(robot)
    drive(robot, data, seconds=2.0, scale=4.0)
    force = data.sensordata[robot.foot_sensor_adr]
    assert force.sum() == pytest.approx(robot.total_mass_kg * 9.81, rel=0.02)
    sunk = robot.standing_height_m - data.qpos[2]
    assert abs(sunk) < 0.04, f"{name} sank by {1e3 * sunk:.0f} mm"


@pytest.mark.parametrize("name", KNEES)
def test_a_locked_knee_holds_under_weight(name, standing, drive):
    joints, angle = KNEES[name]
    robot = build_robot(load_body(f"go2+{name}"))
    data = standing(robot)
    adr = robot.qpos_adr[[JOINT_NAMES.index(joint) for joint in joints]]
    assert data.qpos[adr] == pytest.approx(angle)
    moved = []
    drive(
        robot,
        data,
        seconds=2.0,
        after=lambda: moved.append(np.abs(data.qpos[adr] - angle).max()),
    )
    assert max(moved) < 0.01, f"moved {max(moved):.5f} rad"


@pytest.mark.parametrize("name", KNEES)
def test_a_locked_knee_holds_in_a_fall_against_its_own_motor(name, standing, drive):
    joints, angle = KNEES[name]
    robot = build_robot(load_body(f"go2+{name}"))
    index = [JOINT_NAMES.index(joint) for joint in joints]
    adr, moved, rng = robot.qpos_adr[index], [], np.random.default_rng(0)
    for fall_m in (0.0, 0.3, 0.6):
        data = standing(robot)
        data.qpos[2] += fall_m
        for _ in range(20):
            # Knee targets a radian off: the motors push the locks with 40 N m or more.
            target = robot.default_pose_rad + rng.normal(0.0, 0.3, 12)
            target[index] += rng.choice((-1.0, 1.0), 2)
            drive(
                robot,
                data,
                seconds=0.1,
                target=target,
                after=lambda d=data: moved.append(np.abs(d.qpos[adr] - angle).max()),
            )
    assert max(moved) < 0.01, f"moved {max(moved):.5f} rad"


@pytest.mark.parametrize(
    ("name", "front", "rear"),
    [("stilts", 0.15, 0.15), ("hind-stilts", 0.0, 0.15)],
)
def test_stilts_lengthen_straight_legs_by_15_cm(name, front, rear):
    def feet_z(robot):
        data = mujoco.MjData(robot.model)
        data.qpos[:7] = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
        mujoco.mj_kinematics(robot.model, data)
        return data.geom_xpos[robot.foot_geom_ids, 2]

    raised = feet_z(build_robot(load_preset("go2"))) - feet_z(
        build_robot(load_body(f"go2+{name}"))
    )
    assert raised == pytest.approx([front, front, rear, rear], abs=1e-12), f"{raised} m"


def test_a_stilt_weighs_as_much_per_metre_as_the_calf():
    leg = load_body("go2+stilts").front
    grown = leg.shank_length_m / leg.calf_length_m
    assert leg.shank.mass_kg == pytest.approx(grown * leg.calf.mass_kg)
    assert leg.shank.com_m[2] < leg.calf.com_m[2]


@pytest.mark.parametrize(
    ("name", "masses"),
    [
        ("payload-3kg", [3.0]),
        ("payload-5kg", [5.0]),
        ("two-payloads", [3.0, 5.0]),
        ("stilts-and-payloads", [3.0, 5.0]),
    ],
)
def test_payloads_hang_below_the_trunk_and_clear_of_the_ground(name, masses, standing):
    body = load_body(f"go2+{name}")
    robot = build_robot(body)
    data = standing(robot)
    assert [payload.mass_kg for payload in body.payloads] == masses
    for number, payload in enumerate(body.payloads):
        ball = robot.model.geom(f"payload{number}").id
        link = robot.model.body(f"payload{number}").id
        hang = data.geom_xpos[ball] - data.xpos[link]
        assert hang == pytest.approx((0.0, 0.0, -0.1), abs=1e-9), "not hanging plumb"
        assert data.geom_xpos[ball, 2] > payload.radius_m, "touches the ground"
        iron = payload.mass_kg / (4.0 / 3.0 * math.pi * payload.radius_m**3)
        assert iron == pytest.approx(7870.0)


def test_two_payloads_hang_clear_of_each_other():
    light, heavy = load_body("go2+two-payloads").payloads
    apart = light.attach_m[0] - heavy.attach_m[0]
    assert apart > light.radius_m + heavy.radius_m


@pytest.mark.parametrize("axis", ["x", "y"])
@pytest.mark.parametrize("name", ["payload-3kg", "payload-5kg"])
def test_a_payload_swings_with_its_pendulum_period(name, axis):
    body = load_body(f"go2+{name}")
    spec = build_spec(body)
    spec.delete(spec.joint("root"))  # Hold the trunk in the air.
    spec.delete(spec.key("stand"))
    spec.body("trunk").pos = (0.0, 0.0, 2.0)
    model = spec.compile()
    data = mujoco.MjData(model)
    adr = model.joint(f"payload0_{axis}").qposadr[0]
    data.qpos[adr] = 0.1
    angles = []
    for _ in range(1000):
        mujoco.mj_step(model, data)
        angles.append(data.qpos[adr])
    crossings = np.flatnonzero(np.diff(np.sign(angles)) > 0)
    period = np.diff(crossings).mean() * model.opt.timestep
    mass, length, radius = body.payloads[0].mass_kg, 0.1, body.payloads[0].radius_m
    inertia = mass * length**2 + 0.4 * mass * radius**2
    expected = 2.0 * math.pi * math.sqrt(inertia / (mass * 9.81 * length))
    assert period == pytest.approx(expected, rel=0.01), f"{period:.4f} s"
    assert max(angles[-200:]) > 0.09, "the swing died down"
