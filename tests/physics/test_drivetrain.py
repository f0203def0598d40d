"""Drivetrains: dry friction, viscous friction and rotor inertia of every joint."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from test_motors import MOTORS_ALONE, joint_inertia, one_joint_robot
from worlds import (
    PHYSICS_DT,
    begin,
    exact_pool,
    hold,
    lifted,
    trajectory,
    varied_targets,
)

from horizon_rl.domains import AtLevels, Catalogue, paper_catalogue, shipped_catalogue
from horizon_rl.physics import Pool, sample_pool
from horizon_rl.robots import JOINT_NAMES, build_robot, load_preset

EXTENDED = shipped_catalogue("extended")
UNSCALED = tuple(
    replace(parameter, mass_power=0.0, length_power=0.0)
    for parameter in EXTENDED["drivetrain"].parameters
)
JOINTS_ALONE = Catalogue(
    (*MOTORS_ALONE.groups, replace(EXTENDED["drivetrain"], parameters=UNSCALED))
)
"""Parameters that do not scale with the body, whose trunk weighs 1000 t here."""
JOINT = "RL_calf"
INDEX = JOINT_NAMES.index(JOINT)


def driven(torque: float, **drivetrain: float) -> tuple[np.ndarray, Pool]:
    """Drive a free joint by a constant torque for 0.25 s: its velocity, step by step."""
    values: dict[str, Any] = {
        "actuation.stiffness": 1e4,
        "actuation.effort_limit": torque,
        "actuation.velocity_limit": 1e6,
    }
    for name, value in drivetrain.items():
        values[f"drivetrain.{name}"] = np.where(np.arange(12) == INDEX, value, 0.0)
    robot = one_joint_robot(JOINT)
    pool = lifted(exact_pool([robot], 1, values, catalogue=JOINTS_ALONE), 10.0)
    backend, target = begin(pool), torch.from_numpy(pool.default_pose.copy())
    target[0, INDEX] += 100.0
    found = []
    for _ in range(50):
        backend.step(target)
        found.append(float(backend.state.joint_velocity[0, INDEX]))
    return np.array(found), pool


@pytest.mark.parametrize("friction", [0.2, 1.4])
def test_a_joint_sticks_below_its_friction(friction, every_physics_step):
    torque = 0.95 * friction
    velocity, pool = driven(torque, friction=friction)
    free = torque / joint_inertia(pool.robot, INDEX) * PHYSICS_DT * 50
    assert velocity[-1] < 0.01 * free, f"creeps at {velocity[-1]:.4f} rad/s"
    # To MuJoCo it is a stiff damper up to the friction torque, so that the joint creeps:
    # damping 2 / (0.95 time constant), of which 9 parts in 10 act (solref and solimp).
    compliance = pool.fields["dof_invweight0"][0, 6 + INDEX] / 9.0
    creep = torque * compliance * 0.95 * 0.02 / 2.0
    assert velocity[-1] == pytest.approx(creep, rel=0.05)


@pytest.mark.parametrize("torque", [1.05, 1.5, 3.0])
def test_a_joint_slides_above_its_friction_by_what_is_left(torque, every_physics_step):
    velocity, pool = driven(torque, friction=1.0)
    expected = (torque - 1.0) / joint_inertia(pool.robot, INDEX) * PHYSICS_DT
    gained = np.diff(velocity)[5:10]
    assert gained == pytest.approx(expected, rel=0.02), f"{gained} of {expected}"


def test_viscous_friction_ends_the_acceleration_as_the_closed_form_says(
    every_physics_step,
):
    velocity, pool = driven(0.9, damping=0.6)
    inertia = joint_inertia(pool.robot, INDEX)
    time = PHYSICS_DT * np.arange(1, 51)
    exact = 1.5 * (1.0 - np.exp(-0.6 / inertia * time))
    off = np.abs(velocity - exact).max()
    assert off < 0.05, f"off by {off:.3f} rad/s, ends at {velocity[-1]:.3f} of 1.5"


def test_rotor_inertia_adds_to_the_joint_s(every_physics_step):
    velocity, pool = driven(1.0, armature=0.05)
    expected = PHYSICS_DT / (joint_inertia(pool.robot, INDEX) + 0.05)
    assert velocity[0] == pytest.approx(expected, rel=1e-3)


def test_it_grows_with_the_body_as_its_motors_do():
    robots = [build_robot(load_preset(name)) for name in ("go2", "b2")]
    values = {"drivetrain.friction": 1.0, "drivetrain.armature": 0.02}
    pool = exact_pool(robots, 2, values, catalogue=EXTENDED)
    mass, length = pool.body[1, :2]
    friction = pool.fields["dof_frictionloss"][:, 6:]
    own = np.stack([robot.model.dof_armature[6:] for robot in robots])
    armature = pool.fields["dof_armature"][:, 6:] - own
    assert friction[0] == pytest.approx(1.0) and armature[0] == pytest.approx(0.02)
    assert friction[1] == pytest.approx(mass * length)
    assert armature[1] == pytest.approx(0.02 * mass * length**2)
    assert not pool.fields["dof_frictionloss"][:, :6].any(), "the trunk is free"


def test_every_joint_draws_its_own():
    robot, rng = build_robot(load_preset("go2")), np.random.default_rng(0)
    pool = sample_pool([robot], EXTENDED, AtLevels({"drivetrain": 0.5}), 64, rng)
    for field, most in (("dof_frictionloss", 1.0), ("dof_damping", 0.3)):
        drawn = pool.fields[field][:, 6:]
        assert len(np.unique(drawn)) == drawn.size
        assert 0.95 * most < drawn.max() <= most and drawn.min() >= 0.0


def test_level_0_moves_as_without_the_group_to_the_bit():
    robot = build_robot(load_preset("go2"))
    plain = exact_pool([robot], 4)
    silent = exact_pool([robot], 4, catalogue=EXTENDED)
    # What nobody asks for has no rows, and is not copied in every physics step.
    assert silent.fields.keys() - plain.fields.keys() == {
        "dof_damping",
        "dof_frictionloss",
    }
    one, other = begin(plain), begin(silent)
    for target in varied_targets(plain, 50):
        one.step(target)
        other.step(target)
    assert np.array_equal(trajectory(one), trajectory(other))


def test_a_backend_forgets_what_the_next_pool_does_not_change():
    robot = build_robot(load_preset("go2"))
    plain = exact_pool([robot], 2)
    stiff = exact_pool([robot], 2, {"drivetrain.friction": 2.0}, catalogue=EXTENDED)
    fresh, used = begin(plain), begin(stiff)
    hold(used, stiff, 5)
    everyone, rows = torch.ones(2, dtype=torch.bool), torch.arange(2)
    used.load(plain)
    used.reset(everyone, rows)
    hold(used, plain, 20)
    hold(fresh, plain, 20)
    assert np.array_equal(trajectory(used), trajectory(fresh))


def test_a_snapshot_brings_its_friction_along():
    robot = build_robot(load_preset("go2"))
    stiff = exact_pool([robot], 2, {"drivetrain.friction": 2.0}, catalogue=EXTENDED)
    one, other = begin(stiff), begin(exact_pool([robot], 2))
    hold(one, stiff, 5)
    other.restore(one.snapshot())
    for target in varied_targets(stiff, 20):
        one.step(target)
        other.step(target)
    assert np.array_equal(trajectory(one), trajectory(other))


def test_the_paper_s_pool_varies_no_more_than_before():
    pool = exact_pool([build_robot(load_preset("go2"))], 1, catalogue=paper_catalogue())
    assert not {"dof_damping", "dof_frictionloss"} & pool.fields.keys()
