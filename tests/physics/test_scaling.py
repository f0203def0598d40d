"""A level means the same difficulty for every body: worked by hand for A1 and B2.

Go2 weighs 15.206408 kg on legs of 0.426 m. A1, 12.453 kg on 0.4 m, has m = 0.81893 and
L = 0.93897 of that; B2, 69.0032 kg on 0.7 m, has m = 4.53777 and L = 1.64319.
"""

import numpy as np
import pytest
from worlds import begin, exact_pool, hold

from horizon_rl.domains import parse_catalogue
from horizon_rl.physics import build_pool
from horizon_rl.robots import build_robot, load_body, load_preset

DRAWN = {
    "actuation.effort_limit": 40.0,
    "actuation.velocity_limit": 30.0,
    "actuation.stiffness": 40.0,
    "actuation.damping": 1.0,
    "mass.scale": 2.0,
    "disturbance.push_velocity": 1.0,
    "disturbance.external_force": 1.0,
    "disturbance.external_torque": 0.5,
    "contact.static_friction": 0.7,
    "contact.dynamic_friction": 0.6,
    "inertia.scale": 1.5,
    "com.offset": 0.1,
    "reset.joint_position_scale": 0.9,
    "reset.joint_velocity": 2.0,
}

HAND = {
    # 40 m L, 30 L^-0.5, 40 m L, m L^1.5, L^0.5, m, 0.5 m L, 0.1 L.
    "go2": (40.0, 30.0, 40.0, 1.0, 1.0, 1.0, 0.5, 0.1),
    "a1": (
        30.7580,
        30.9597,
        30.7580,
        0.745115,
        0.968999,
        0.818931,
        0.384475,
        0.0938967,
    ),
    "b2": (298.257, 23.4032, 298.257, 9.55815, 1.281871, 4.537771, 3.728215, 0.1643192),
}


@pytest.mark.parametrize("name", HAND)
def test_parameters_scale_with_the_body_as_worked_by_hand(name):
    robot = build_robot(load_preset(name))
    pool = exact_pool([robot], 1, DRAWN)
    effort, speed, stiffness, damping, push, force, torque, shift = HAND[name]
    trunk = robot.trunk_body_id
    moved = pool.fields["body_ipos"][0, trunk] - robot.model.body_ipos[trunk]
    for what, found, expected in (
        ("effort", pool.effort, effort),
        ("velocity limit", pool.velocity_limit, speed),
        ("stiffness", pool.fields["actuator_gainprm"][0, :, 0], stiffness),
        ("stiffness", pool.fields["actuator_biasprm"][0, :, 1], -stiffness),
        ("damping", pool.fields["actuator_biasprm"][0, :, 2], -damping),
        ("push", pool.push_velocity, push),
        ("force", pool.wrench[0, :3], force),
        ("torque", pool.wrench[0, 3:], torque),
        ("com offset", moved, shift),
    ):
        assert found == pytest.approx(expected, rel=1e-4), f"{name}: {what} {found}"


@pytest.mark.parametrize("name", HAND)
def test_dimensionless_parameters_are_the_same_for_every_body(name):
    robot = build_robot(load_preset(name))
    pool = exact_pool([robot], 1, DRAWN)
    model, fields = robot.model, pool.fields
    assert np.array_equal(fields["body_mass"][0], 2.0 * model.body_mass)
    assert np.array_equal(fields["body_inertia"][0], 2.0 * model.body_inertia * 1.5)
    assert np.all(fields["geom_friction"][0, robot.foot_geom_ids, 0] == 0.6)
    assert np.all(pool.start_qvel[0, robot.dof_adr] == 2.0)
    start = pool.start_qpos[0, robot.qpos_adr]
    assert start == pytest.approx(0.9 * robot.default_pose_rad), f"{start} rad"


def test_stilts_and_payloads_leave_the_scale_alone():
    plain, changed = (
        exact_pool([build_robot(load_body(name))])
        for name in ("go2", "go2+stilts-and-payloads")
    )
    assert np.array_equal(plain.effort, changed.effort)
    assert np.array_equal(plain.body[:, :4], changed.body[:, :4])


def test_without_a_parameter_for_it_a_motor_is_the_real_robots_own():
    catalogue = parse_catalogue(
        "[groups.mass.parameters.scale]\nbaseline = [1, 1]\nlimit = [0.5, 2]"
    )
    robot = build_robot(load_preset("b2"))
    instances = {"mass.scale": np.ones(1)}
    pool = build_pool([robot], catalogue, instances, np.zeros(1, dtype=int))
    assert pool.effort[0, :3].tolist() == [200.0, 200.0, 320.0]
    assert pool.velocity_limit[0, :3].tolist() == [23.0, 23.0, 14.0]
    assert np.all(pool.fields["actuator_gainprm"][0, :, 0] == 160.0)
    assert np.all(pool.fields["actuator_biasprm"][0, :, 2] == -5.0)
    backend = begin(pool)
    hold(backend, pool, 100)
    height = float(backend.state.root_position[0, 2]) / robot.standing_height_m
    assert 0.6 < height < 1.0, f"stands at {height:.3f} of its height"


def test_bodies_of_all_sizes_stand_alike_on_scaled_motors():
    names = ("go2", "a1", "b2")
    pool = exact_pool([build_robot(load_preset(name)) for name in names], 3)
    backend = begin(pool)
    hold(backend, pool, 100)
    height = backend.state.root_position[:, 2].double().numpy() / pool.standing_height
    assert np.ptp(height) < 0.1, f"they stand at {height} of their heights"
