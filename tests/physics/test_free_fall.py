"""Forces, torques, inertia and pushes on a robot that touches nothing.

The robot is rigid and falls from 10 m: gravity turns nothing, and nothing else acts.
"""

import numpy as np
import pytest
import torch
from worlds import GRAVITY, begin, com_velocity, exact_pool, hold, lifted, rigid

from horizon_rl.physics import CONTROL_DT, Pool
from horizon_rl.robots import Morphology, build_robot, load_preset

STEPS = 5
"""Control steps: too few for the turning robot to change its inertia's direction."""


def fall(values: dict, n: int = 1, name: str = "go2") -> Pool:
    return lifted(exact_pool([rigid(load_preset(name))], n, values), 10.0)


def parts(body: Morphology, inertia_scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Sum inertias [3, 3] about the robot's centre of mass, trunk frame, by hand.

    Returns the links' own inertia, scaled, and what their distances add.
    """
    own, distances = np.zeros((3, 3)), np.zeros((3, 3))

    def add(link, origin, rotation):
        nonlocal own, distances
        own += inertia_scale * rotation @ link.inertia_matrix_kg_m2 @ rotation.T
        r = origin + rotation @ np.array(link.com_m) - body.com_m
        distances += link.mass_kg * (r @ r * np.eye(3) - np.outer(r, r))

    add(body.trunk, np.zeros(3), np.eye(3))
    for leg in body.legs:
        frames = leg.frames(leg.default_pose_rad)[:3]
        for link, (origin, rotation) in zip(leg.links, frames, strict=True):
            add(link, origin, rotation)
    return own, distances


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_a_torque_turns_the_body_by_torque_over_scaled_inertia(scale, axis):
    body = load_preset("go2")
    torque = 0.5 * np.eye(3)[axis]
    pool = fall({"inertia.scale": scale, "disturbance.external_torque": [torque]})
    backend = begin(pool)
    hold(backend, pool, STEPS)
    found = backend.state.angular_velocity[0].double().numpy() / (STEPS * CONTROL_DT)
    own, distances = parts(body, scale)
    # The trunk starts pitched as it stands; the torque is given along world axes.
    c, s = np.cos(body.stance.pitch_rad), np.sin(body.stance.pitch_rad)
    to_trunk = np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]]).T
    expected = np.linalg.solve(own + distances, to_trunk @ torque)
    assert found == pytest.approx(expected, abs=0.01 * np.abs(expected).max()), (
        f"{found} of {expected} rad/s2"
    )


def test_only_the_links_own_inertia_scales_not_their_distances():
    scales = np.array([0.5, 1.0, 2.0])
    own, _ = parts(load_preset("go2"), 1.0)
    values = {"inertia.scale": scales, "disturbance.external_torque": (0.0, 0.0, 0.5)}
    pool = fall(values, 3)
    backend = begin(pool)
    hold(backend, pool, STEPS)
    speed = backend.state.angular_velocity[:, 2].double().numpy()
    response = STEPS * CONTROL_DT * 0.5 / speed
    slope = np.polyfit(scales, response, 1)[0]
    assert slope == pytest.approx(own[2, 2], rel=0.02), f"{slope} of {own[2, 2]} kg m2"


@pytest.mark.parametrize("scale", [0.4, 1.0, 5.0])
def test_a_force_accelerates_by_force_over_mass(scale):
    force = np.array([1.0, -0.5, 0.25])
    values = {"mass.scale": scale, "disturbance.external_force": [force]}
    pool = fall(values)
    backend = begin(pool)
    hold(backend, pool, STEPS)
    found = com_velocity(pool, backend)[0] / (STEPS * CONTROL_DT)
    mass = scale * load_preset("go2").total_mass_kg
    expected = force / mass - (0.0, 0.0, GRAVITY)
    assert found == pytest.approx(expected, abs=1e-6), f"{found} of {expected} m/s2"


def test_a_force_acts_for_the_whole_episode_and_ends_with_it():
    force = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    pool = fall({"disturbance.external_force": force}, 2)
    backend = begin(pool)
    hold(backend, pool, 50)
    found = com_velocity(pool, backend)[:, 0]
    mass = load_preset("go2").total_mass_kg
    assert found == pytest.approx([1.0 / mass, 0.0], abs=1e-6), f"{found} m/s"
    backend.reset(torch.tensor([True, False]), torch.tensor([1, 0]))
    hold(backend, pool, 5)
    assert com_velocity(pool, backend)[0, 0] == pytest.approx(0.0, abs=1e-12)


def test_mass_and_inertia_scale_together_when_mass_does():
    robot = build_robot(load_preset("go2"))
    values = {"mass.scale": [0.4, 5.0], "inertia.scale": [1.0, 2.0]}
    pool = exact_pool([robot], 2, values)
    mass, inertia = robot.model.body_mass, robot.model.body_inertia
    assert np.array_equal(pool.fields["body_mass"][0], 0.4 * mass)
    assert np.array_equal(pool.fields["body_inertia"][0], 0.4 * inertia)
    assert np.array_equal(pool.fields["body_mass"][1], 5.0 * mass)
    assert np.array_equal(pool.fields["body_inertia"][1], 2.0 * (5.0 * inertia))


def test_a_push_changes_the_velocity_by_exactly_what_it_says():
    robot = build_robot(load_preset("go2"))
    pool = exact_pool([robot], 3, {"mass.scale": [0.4, 1.0, 5.0]})
    backend = begin(pool)
    hold(backend, pool, 10)
    before, joints = backend._qvel.copy(), backend.state.joint_velocity.clone()
    push = np.array([[5.0, -5.0], [0.0, 0.0], [-0.25, 1.5]])
    backend.push(torch.from_numpy(push))
    after = backend._qvel
    assert np.array_equal(after[:, :2], before[:, :2] + push)
    assert np.array_equal(after[:, 2:], before[:, 2:])
    found = backend.state.linear_velocity[:, :2].numpy()
    assert np.array_equal(found, after[:, :2].astype(np.float32)), f"{found} m/s"
    assert torch.equal(backend.state.joint_velocity, joints)


def test_planned_pushes_are_pairs_of_x_and_y():
    planned = np.array([[1.0, 2.0, 3.0, 4.0]])
    robot = build_robot(load_preset("go2"))
    pool = exact_pool([robot], 1, {"disturbance.push_velocity": planned})
    assert pool.push_velocity.tolist() == [[[1.0, 2.0], [3.0, 4.0]]]
