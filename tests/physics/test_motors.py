"""Motors: PD response, effort, and the torque that speed leaves."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest
import torch
from worlds import (
    PHYSICS_DT,
    begin,
    exact_pool,
    lifted,
    over_limits,
    some_robots,
    varied_targets,
)

from horizon_rl.domains import paper_catalogue, parse_catalogue
from horizon_rl.physics import sample_pool, torque_bounds
from horizon_rl.robots import JOINT_NAMES, Link, Robot, build_robot, load_preset

MOTORS_ALONE = parse_catalogue(
    "\n".join(
        f"[groups.actuation.parameters.{name}]\nbaseline = [1, 1]\nlimit = [1, 1]"
        for name in ("effort_limit", "velocity_limit", "stiffness", "damping")
    )
)
"""Motor parameters that do not scale with the body."""


def one_joint_robot(joint: str) -> Robot:
    """Lock all joints but one, on a trunk that nothing moves: 1000 t."""
    body = load_preset("go2")
    locked = tuple(
        (name, angle)
        for name, angle in zip(JOINT_NAMES, body.default_pose_rad.tolist(), strict=True)
        if name != joint
    )
    trunk = Link(
        mass_kg=1e6, com_m=(0.0, 0.0, 0.0), inertia_kg_m2=(1e6, 1e6, 1e6, 0, 0, 0)
    )
    return build_robot(replace(body, trunk=trunk, locked=locked))


def joint_inertia(robot: Robot, joint: int) -> float:
    data = mujoco.MjData(robot.model)
    mujoco.mj_resetDataKeyframe(robot.model, data, 0)
    mujoco.mj_forward(robot.model, data)
    mass_matrix = np.zeros((robot.model.nv, robot.model.nv))
    mujoco.mj_fullM(robot.model, data, mass_matrix)
    return float(mass_matrix[6 + joint, 6 + joint])


def step_response(time, stiffness, damping, inertia) -> np.ndarray:
    """Closed form of inertia x'' = stiffness (1 - x) - damping x', from rest."""
    rate = np.sqrt(stiffness / inertia)
    ratio = damping / (2.0 * np.sqrt(stiffness * inertia))
    root = np.sqrt(complex(ratio**2 - 1.0))
    one, other = rate * (-ratio + root), rate * (-ratio - root)
    decay = (other * np.exp(one * time) - one * np.exp(other * time)) / (one - other)
    return (1.0 + decay).real


@pytest.mark.parametrize("gains", [(20.0, 0.4), (20.0, 4.0), (40.0, 1.0), (80.0, 4.0)])
@pytest.mark.parametrize("joint", ["FL_hip", "RR_thigh", "RL_calf"])
def test_a_joint_answers_a_step_as_the_closed_form_says(
    joint, gains, every_physics_step
):
    stiffness, damping = gains
    robot, index = one_joint_robot(joint), JOINT_NAMES.index(joint)
    values = {
        "actuation.stiffness": stiffness,
        "actuation.damping": damping,
        "actuation.effort_limit": 1e3,
        "actuation.velocity_limit": 1e3,
    }
    pool = lifted(exact_pool([robot], 1, values, catalogue=MOTORS_ALONE), 10.0)
    backend = begin(pool)
    target = torch.from_numpy(pool.default_pose.copy())
    target[0, index] += 0.1
    found = []
    for _ in range(100):
        backend.step(target)
        moved = backend.state.joint_position[0, index] - pool.default_pose[0, index]
        found.append(float(moved) / 0.1)
    inertia = joint_inertia(robot, index)
    time = PHYSICS_DT * np.arange(1, 101)
    exact = step_response(time, stiffness, damping, inertia)
    off = np.abs(np.array(found) - exact).max()
    assert off < 0.05, f"off by {100 * off:.1f} % of the step, inertia {inertia:.4f}"


def test_torque_never_passes_the_torque_speed_line(every_physics_step):
    robots = some_robots(50)
    rng = np.random.default_rng(2)
    pool = sample_pool(robots, paper_catalogue(), over_limits(), 128, rng)
    backend = begin(pool)
    braking = driving = 0
    for target in varied_targets(pool, 400):
        velocity = backend.state.joint_velocity.double().numpy()
        # A target ten times as far: the controller asks for all it can get.
        backend.step(torch.from_numpy(pool.default_pose) * -9.0 + 10.0 * target)
        torque = backend.state.torque.double().numpy()
        against = velocity * np.sign(torque) / pool.velocity_limit
        line = pool.effort * np.clip(2.0 * (1.0 - against), 0.0, 1.0)
        over = (np.abs(torque) - line) / pool.effort
        assert over.max() < 1e-5, f"{100 * over.max():.4f} % of the effort too much"
        at_line = np.abs(torque) > 0.999 * line
        driving += int(np.sum(at_line & (against > 0.5) & (line > 0.0)))
        braking += int(np.sum(at_line & (against < -0.5)))
    assert min(driving, braking) > 1000, f"{driving} driving, {braking} braking at it"


@pytest.mark.parametrize(
    ("velocity", "share"),
    [(0.0, 1.0), (15.0, 1.0), (22.5, 0.5), (30.0, 0.0), (40.0, 0.0), (-40.0, 1.0)],
)
def test_full_torque_to_half_the_velocity_limit_then_less_and_always_braking(
    velocity, share, every_physics_step
):
    pool = lifted(exact_pool([build_robot(load_preset("go2"))], 1), 10.0)
    qvel = pool.start_qvel.copy()
    qvel[:, pool.robot.dof_adr] = velocity
    backend = begin(replace(pool, start_qvel=qvel))
    backend.step(torch.from_numpy(pool.default_pose) + 100.0)
    torque = backend.state.torque[0].numpy()
    assert torque == pytest.approx(40.0 * share), f"{torque} N m at {velocity} rad/s"


def test_bounds_are_symmetric_and_hand_computed():
    bounds = np.empty((1, 4, 2))
    velocity = np.array([[0.0, 9.0, -9.0, 12.0]])
    torque_bounds(velocity, np.full((1, 4), 5.0), np.full((1, 4), 10.0), out=bounds)
    # 5 * 2 * (1 - 0.9) = 1 in the direction of motion, all 5 against it.
    expected = [[-5.0, 5.0], [-5.0, 1.0], [-1.0, 5.0], [-5.0, 0.0]]
    assert bounds[0] == pytest.approx(np.array(expected)), f"{bounds[0]}"


@pytest.mark.parametrize("damping", [0.0, 4.0])
def test_a_motor_at_its_bound_accelerates_by_effort_over_inertia(
    damping, every_physics_step
):
    # Damping is integrated implicitly; where the bound acts it must not add to that.
    robot, index = one_joint_robot("RL_calf"), JOINT_NAMES.index("RL_calf")
    values = {
        "actuation.stiffness": 1e3,
        "actuation.damping": damping,
        "actuation.effort_limit": 10.0,
        "actuation.velocity_limit": 1e3,
    }
    pool = lifted(exact_pool([robot], 1, values, catalogue=MOTORS_ALONE), 10.0)
    backend = begin(pool)
    target = torch.from_numpy(pool.default_pose.copy())
    target[0, index] += 1.0
    backend.step(target)
    found = float(backend.state.joint_velocity[0, index]) / PHYSICS_DT
    expected = 10.0 / joint_inertia(robot, index)
    assert found == pytest.approx(expected, rel=1e-3), f"{found} of {expected} rad/s2"


def test_a_motor_does_not_drive_its_joint_past_the_velocity_limit(every_physics_step):
    robot, index = one_joint_robot("FL_thigh"), JOINT_NAMES.index("FL_thigh")
    values = {
        "actuation.stiffness": 1e3,
        "actuation.damping": 0.0,
        "actuation.effort_limit": 10.0,
        "actuation.velocity_limit": 10.0,
    }
    pool = lifted(exact_pool([robot], 1, values, catalogue=MOTORS_ALONE), 10.0)
    backend = begin(pool)
    target = torch.from_numpy(pool.default_pose.copy())
    target[0, index] += 100.0
    fastest = 0.0
    for _ in range(30):
        backend.step(target)
        fastest = max(fastest, float(backend.state.joint_velocity[0, index]))
    assert 9.0 < fastest <= 10.0 * (1 + 1e-6), f"reached {fastest:.3f} of 10 rad/s"
