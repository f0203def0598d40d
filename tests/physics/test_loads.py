"""What a standing robot weighs, and on which feet."""

import numpy as np
import pytest
from worlds import GRAVITY, STRONG, begin, exact_pool, hold, rigid

from horizon_rl.robots import Morphology, build_robot, load_preset

SCALES = [0.4, 1.0, 5.0]
OFFSETS = [
    (0.0, 0.0, 0.0),
    (0.3, 0.0, 0.0),
    (-0.3, 0.0, 0.0),
    (0.0, 0.15, 0.0),
    (0.0, -0.15, 0.0),
    (0.1, -0.1, 0.2),
]


@pytest.mark.parametrize("name", ["go2", "a1", "b2"])
def test_weight_on_the_feet_is_mass_scale_times_weight(name):
    robot = build_robot(load_preset(name))
    pool = exact_pool([robot], len(SCALES), STRONG | {"mass.scale": SCALES})
    backend = begin(pool)
    hold(backend, pool, 100)
    load = backend.state.foot_force.sum(dim=1).numpy()
    expected = np.array(SCALES) * robot.total_mass_kg * GRAVITY
    assert load == pytest.approx(expected, rel=0.01), f"{load} N of {expected} N"
    assert backend.state.trunk_force.max() == 0.0, "lies on its belly"


def test_a_robot_at_its_nominal_gains_stands():
    robots = [build_robot(load_preset(name)) for name in ("go2", "a1", "b2")]
    pool = exact_pool(robots, 3)
    backend = begin(pool)
    hold(backend, pool, 100)
    sunk = 1.0 - backend.state.root_position[:, 2].numpy() / pool.standing_height
    assert np.all(sunk < 0.25), f"sunk by {100 * sunk} % of their height"
    assert backend.state.trunk_force.max() == 0.0


@pytest.mark.parametrize("offset", OFFSETS)
def test_a_shifted_com_loads_the_feet_by_the_lever_rule(offset):
    body = load_preset("go2")
    pool = exact_pool([rigid(body)], 1, {"com.offset": [offset]})
    backend = begin(pool)
    hold(backend, pool, 100)
    loads = backend.state.foot_force[0].double().numpy()

    poses = zip(body.legs, body.stand_pose_rad.reshape(4, 3), strict=True)
    feet = np.array([level(body, leg.frames(pose)[3][0]) for leg, pose in poses])
    share = body.trunk.mass_kg / body.total_mass_kg
    com = level(body, body.com_m + share * np.array(offset))
    # Lever rule: from the side, the robot is a beam on its front and its rear feet.
    weight = body.total_mass_kg * GRAVITY
    front_x, rear_x = feet[0, 0], feet[2, 0]
    front = weight * (com[0] - rear_x) / (front_x - rear_x)
    assert loads[:2].sum() == pytest.approx(front, abs=0.005 * weight), (
        f"front feet bear {loads[:2].sum():.2f} N, statics says {front:.2f} N"
    )
    # Both ways at once: the ground's pressure centres below the centre of mass.
    apart_mm = 1e3 * (loads @ feet / loads.sum() - com)[:2]
    assert np.abs(apart_mm).max() < 2.0, f"{apart_mm} mm apart"
    assert loads.sum() == pytest.approx(weight, rel=1e-3), f"{loads} of {weight:.1f} N"


def test_a_com_beyond_the_feet_tips_the_robot():
    far = {"com.offset": [(0.5, 0.0, 0.0)]}
    pool = exact_pool([rigid(load_preset("go2"))], 1, far)
    backend = begin(pool)
    hold(backend, pool, 100)
    rear = backend.state.foot_force[0, 2:].sum()
    assert rear == 0.0, f"the rear feet still bear {rear:.1f} N"


def level(body: Morphology, point: np.ndarray) -> np.ndarray:
    """Turn a point of the trunk frame into a level frame: Go2 stands nose up."""
    x, y, z = point
    c, s = np.cos(body.stance.pitch_rad), np.sin(body.stance.pitch_rad)
    return np.array([c * x + s * z, y, c * z - s * x])
