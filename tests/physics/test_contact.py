"""Sliding and bouncing: what friction and restitution do to a robot's own feet.

The robot is rigid, so that its legs neither fold nor spring.
"""

import mujoco
import numpy as np
import pytest
import torch
from worlds import GRAVITY, begin, com_velocity, exact_pool, hold, lifted, rigid

from horizon_rl.physics import CONTROL_DT
from horizon_rl.robots import Robot, load_preset

FRICTION = np.array([0.05, 0.5, 2.0])
CLEARANCE = 1e-3


def along(heading_deg: float) -> np.ndarray:
    return np.array([np.cos(np.deg2rad(heading_deg)), np.sin(np.deg2rad(heading_deg))])


def same_friction(friction: np.ndarray) -> dict[str, np.ndarray]:
    return {"contact.static_friction": friction, "contact.dynamic_friction": friction}


def drag(values: dict, pull: np.ndarray, heading_deg: float = 0.0) -> np.ndarray:
    """Pull robots over the ground by `pull` weights; return what holds them, m/s2.

    The force acts on the trunk's centre of mass, which an offset puts level with the
    feet and below the centre of the whole: nothing tips or turns the robot, and it
    slides slowly and steadily.
    """
    body, direction = load_preset("go2"), along(heading_deg)
    share = body.trunk.mass_kg / body.total_mass_kg
    back = (body.com_m[0] - body.trunk.com_m[0]) / (1.0 - share)
    force = np.zeros((len(pull), 3))
    force[:, :2] = np.outer(pull * body.total_mass_kg * GRAVITY, direction)
    values = values | {
        "com.offset": (back, 0.0, -body.standing_height_m),
        "disturbance.external_force": force,
    }
    pool = exact_pool([rigid(body)], len(pull), values)
    backend = begin(pool)
    hold(backend, pool, 10)
    before = com_velocity(pool, backend)[:, :2] @ direction
    hold(backend, pool, 20)
    after = com_velocity(pool, backend)[:, :2] @ direction
    assert before.min() > 0.0, f"not sliding: {before} m/s"
    return pull * GRAVITY - (after - before) / (20 * CONTROL_DT)


@pytest.mark.parametrize("heading_deg", [0.0, 45.0, 90.0])
def test_a_sliding_robot_is_held_by_friction_times_gravity(heading_deg):
    found = drag(same_friction(FRICTION), FRICTION + 0.02, heading_deg)
    expected = GRAVITY * FRICTION
    assert found == pytest.approx(expected, rel=0.05), f"{found} of {expected} m/s2"


def coast(friction: np.ndarray, speed: float, heading_deg: float = 0.0) -> np.ndarray:
    """Push robots to `speed`; return their mean deceleration until a tenth is left."""
    low = {"com.offset": (0.0, 0.0, -0.55)}  # Else they would tip over their feet.
    n, direction = len(friction), along(heading_deg)
    pool = exact_pool([rigid(load_preset("go2"))], n, same_friction(friction) | low)
    backend = begin(pool)
    hold(backend, pool, 50)
    backend.push(torch.from_numpy(np.tile(speed * direction, (n, 1))))
    found = np.zeros(n)
    for step in range(1, 120):
        hold(backend, pool, 1)
        velocity = com_velocity(pool, backend)[:, :2] @ direction
        stops = (found == 0.0) & (velocity < 0.1 * speed)
        found[stops] = ((speed - velocity) / (step * CONTROL_DT))[stops]
        if found.all():
            break
    return found


def test_a_pushed_robot_coasts_to_rest_at_friction_times_gravity():
    found, expected = coast(FRICTION[:2], 1.0), GRAVITY * FRICTION[:2]
    assert found == pytest.approx(expected, rel=0.05), f"{found} of {expected} m/s2"


@pytest.mark.parametrize("heading_deg", [0.0, 45.0, 90.0])
def test_a_fast_slide_at_high_friction_hops_but_brakes_nearly_as_it_should(heading_deg):
    # A limit of MuJoCo's soft contacts, which push up what slides fast.
    found, expected = coast(FRICTION[2:], 4.0, heading_deg), GRAVITY * FRICTION[2:]
    assert found == pytest.approx(expected, rel=0.2), f"{found} of {expected} m/s2"


def test_the_lesser_of_static_and_dynamic_friction_acts():
    values = {
        "contact.static_friction": [0.8, 0.2],
        "contact.dynamic_friction": [0.2, 0.8],
    }
    found = drag(values, np.array([0.22, 0.22]))
    assert found == pytest.approx(0.2 * GRAVITY, rel=0.05), f"{found} m/s2"
    assert found[0] == found[1]


def test_friction_of_zero_is_ice():
    found = drag(same_friction(np.zeros(1)), np.array([0.02]))
    assert abs(found[0]) < 1e-3, f"{found} m/s2"


def bounce(robot: Robot, restitution: float, heights: np.ndarray) -> np.ndarray:
    """Drop a robot on its four feet; return sqrt(rebound / drop height).

    An offset puts its centre of mass over the middle of its feet, so that it does not
    start to tumble. Call it under `every_physics_step`.
    """
    body = load_preset("go2")
    share = body.trunk.mass_kg / body.total_mass_kg
    feet_x = np.mean([leg.frames(leg.default_pose_rad)[3][0][0] for leg in body.legs])
    values = {
        "contact.restitution": restitution,
        "com.offset": ((feet_x - body.com_m[0]) / share, 0.0, 0.0),
    }
    n = len(heights)
    ground = exact_pool([robot], n, values)
    pool = lifted(ground, heights)
    backend = begin(pool)
    touching = ground.start_qpos[:, 2] - CLEARANCE
    landed, apex = np.zeros(n, dtype=bool), np.zeros(n)
    for _ in range(130):  # 0.65 s: from 0.3 m down, and up again to the first apex.
        hold(backend, pool, 1)
        height = backend.state.root_position[:, 2].cpu().numpy() - touching
        landed |= backend.state.foot_force.sum(dim=1).cpu().numpy() > 0.0
        rising = backend.state.linear_velocity[:, 2].cpu().numpy() > 0.0
        apex = np.where(landed & rising, np.maximum(apex, height), apex)
    assert landed.all()
    return np.sqrt(apex / (heights + CLEARANCE))


HEIGHTS = np.linspace(0.1, 0.3, 16)
"""Drop heights, m: at 5 ms it matters where within a step a foot meets the ground."""


@pytest.mark.parametrize("restitution", [0.3, 0.6, 0.9])
def test_feet_rebound_by_the_restitution(restitution, every_physics_step):
    found = bounce(rigid(load_preset("go2")), restitution, HEIGHTS)
    assert found.mean() == pytest.approx(restitution, rel=0.1), (
        f"rebounds at {found.mean():.3f}, {found.min():.3f} to {found.max():.3f}"
    )


@pytest.mark.parametrize("restitution", [0.3, 0.6, 0.9])
def test_a_lone_foot_rebounds_by_the_restitution(restitution):
    robot = rigid(load_preset("go2"))
    pool = exact_pool([robot], 1, {"contact.restitution": restitution})
    stiffness, damping = pool.fields["geom_solref"][0, robot.foot_geom_ids[0]]
    model = mujoco.MjModel.from_xml_string(
        f"""
        <mujoco>
          <option timestep="0.005" cone="elliptic" integrator="implicitfast"/>
          <worldbody>
            <geom type="plane" size="0 0 1"/>
            <body>
              <freejoint/>
              <geom size="0.02" priority="1" solref="{stiffness} {damping}"/>
            </body>
          </worldbody>
        </mujoco>
        """
    )
    found = np.array([drop_foot(model, height) for height in HEIGHTS])
    assert found.mean() == pytest.approx(restitution, rel=0.1), (
        f"rebounds at {found.mean():.3f}, {found.min():.3f} to {found.max():.3f}"
    )


def drop_foot(model: mujoco.MjModel, height: float) -> float:
    data = mujoco.MjData(model)
    data.qpos[2] = 0.02 + height
    heights, contacts = [], []
    for _ in range(200):
        mujoco.mj_step(model, data)
        heights.append(data.qpos[2] - 0.02)
        contacts.append(data.ncon > 0)
    rebound = heights[int(np.argmax(contacts)) :]
    return float(np.sqrt(max(max(rebound), 0.0) / height))


def test_without_restitution_feet_stay_on_the_ground(every_physics_step):
    found = bounce(rigid(load_preset("go2")), 0.0, HEIGHTS)
    assert found.max() < 0.01, f"rebounds at {found.max():.3f}"


def test_restitution_of_one_gains_no_energy(every_physics_step):
    found = bounce(rigid(load_preset("go2")), 1.0, HEIGHTS)
    assert found.max() < 1.0, f"rebounds at up to {found.max():.3f}"
    assert found.mean() > 0.9, f"rebounds at {found.mean():.3f}"


def test_contacts_without_restitution_are_mujocos_own():
    robot = rigid(load_preset("go2"))
    pool = exact_pool([robot], 2, {"contact.restitution": [0.0, 0.5]})
    still, bouncing = pool.fields["geom_solref"]
    assert np.array_equal(still, robot.model.geom_solref)
    feet = robot.foot_geom_ids
    assert np.all(bouncing[feet] < 0.0), f"{bouncing[feet]}"
    assert np.array_equal(bouncing[0], still[0]), "the floor is left alone"
