"""The CPU's experiments once more, on the GPU backend: free fall, slides, drops.

The experiments are those of test_free_fall, test_contact and test_loads; what they are
held to is the same physics, in float32.
"""

import numpy as np
import pytest
from gpu_worlds import begin_gpu
from test_contact import FRICTION, HEIGHTS, bounce, coast, drag, same_friction
from test_free_fall import STEPS, fall
from worlds import GRAVITY, begin, com_velocity, exact_pool, hold, rigid

from horizon_rl.physics import CONTROL_DT
from horizon_rl.robots import build_robot, load_preset

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def on_the_gpu(monkeypatch):
    """Let the experiments begin on the GPU."""
    monkeypatch.setattr("test_contact.begin", begin_gpu)


@pytest.fixture
def every_physics_step(monkeypatch):
    """Let `step` advance one physics step, so that nothing in between goes unseen."""
    monkeypatch.setattr("horizon_rl.physics.gpu.PHYSICS_STEPS", 1)


def test_a_force_accelerates_by_force_over_mass():
    force, scales = np.array([1.0, -0.5, 0.25]), np.array([0.4, 1.0, 5.0])
    values = {"mass.scale": scales, "disturbance.external_force": force}
    pool = fall(values, 3)
    backend = begin_gpu(pool)
    hold(backend, pool, STEPS)
    found = com_velocity(pool, backend) / (STEPS * CONTROL_DT)
    mass = scales[:, None] * load_preset("go2").total_mass_kg
    expected = force / mass - (0.0, 0.0, GRAVITY)
    assert found == pytest.approx(expected, abs=1e-4), f"{found} of {expected} m/s2"


def test_a_torque_turns_as_on_the_cpu():
    values = {
        "inertia.scale": [0.5, 2.0],
        "disturbance.external_torque": [0.1, 0.5, 0.3],
    }
    pool = fall(values, 2)
    speeds = []
    for backend in (begin(pool), begin_gpu(pool)):
        hold(backend, pool, STEPS)
        speeds.append(backend.state.angular_velocity.cpu().numpy())
    assert speeds[1] == pytest.approx(speeds[0], rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("heading_deg", [0.0, 45.0])
def test_a_sliding_robot_is_held_by_friction_times_gravity(heading_deg):
    found = drag(same_friction(FRICTION), FRICTION + 0.02, heading_deg)
    expected = GRAVITY * FRICTION
    assert found == pytest.approx(expected, rel=0.05), f"{found} of {expected} m/s2"


def test_a_pushed_robot_coasts_to_rest_at_friction_times_gravity():
    friction = np.array([0.2, 0.5])
    found, expected = coast(friction, 1.0), GRAVITY * friction
    assert found == pytest.approx(expected, rel=0.05), f"{found} of {expected} m/s2"


@pytest.mark.parametrize("restitution", [0.3, 0.9])
def test_feet_rebound_by_the_restitution(restitution, every_physics_step):
    found = bounce(rigid(load_preset("go2")), restitution, HEIGHTS[::2])
    assert found.mean() == pytest.approx(restitution, rel=0.1), (
        f"rebounds at {found.mean():.3f}, {found.min():.3f} to {found.max():.3f}"
    )


def test_the_feet_carry_the_weight():
    scales = np.array([0.4, 1.0, 5.0])
    strong = {"actuation.effort_limit": 1000.0, "actuation.stiffness": 400.0}
    robot = build_robot(load_preset("go2"))
    pool = exact_pool([robot], 3, strong | {"mass.scale": scales})
    backend = begin_gpu(pool)
    hold(backend, pool, 110)
    found = backend.state.foot_force.sum(dim=1).cpu().numpy()
    expected = scales * robot.total_mass_kg * GRAVITY
    assert found == pytest.approx(expected, rel=0.01), f"{found} of {expected} N"
