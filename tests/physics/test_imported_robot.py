"""Robots that others wrote: other joint order, directions and zero poses."""

import numpy as np
import pytest
import torch
from worlds import begin, exact_pool, hold, lifted, over_limits, varied_targets

from canonical import canonical_position
from horizon_rl.domains import paper_catalogue
from horizon_rl.physics import build_pool
from horizon_rl.robots import (
    JOINT_NAMES,
    Robot,
    build_robot,
    build_spec,
    load_mjcf,
    load_preset,
)

FLIPPED = ("FL_calf", "FR_hip", "RR_thigh")


def imported_go2(tmp_path, unlimited: str = "") -> Robot:
    """Write our Go2 to a file, some axes turned round and an angle counted from 0.2."""
    body = load_preset("go2")
    spec = build_spec(body)
    for element in (*spec.actuators, *spec.sensors, *spec.keys, *spec.sites):
        spec.delete(element)
    for name in FLIPPED:
        joint = spec.joint(name)
        joint.axis, joint.range = -joint.axis, -joint.range[::-1]
    spec.joint("RL_thigh").ref = 0.2
    spec.joint("RL_thigh").range = spec.joint("RL_thigh").range + 0.2
    if unlimited:
        spec.joint(unlimited).limited = 0
    spec.compile()
    path = tmp_path / "robot.xml"
    path.write_text(spec.to_xml())
    return load_mjcf(path, default_pose_rad=body.default_pose_rad)


def test_an_imported_robot_moves_as_the_built_one(tmp_path):
    ours, theirs = build_robot(load_preset("go2")), imported_go2(tmp_path)
    names = [JOINT_NAMES[i] for i in np.flatnonzero(theirs.joint_sign < 0.0)]
    assert set(names) == set(FLIPPED)
    catalogue = paper_catalogue()
    instances = over_limits().sample(catalogue, 32, np.random.default_rng(3))
    pools = [
        build_pool([robot], catalogue, instances, np.zeros(32, dtype=int))
        for robot in (ours, theirs)
    ]
    one, other = map(begin, pools)
    for target in varied_targets(pools[0], 25):
        one.step(target)
        other.step(target)
    for name in ("joint_position", "root_position", "joint_velocity", "torque"):
        a, b = getattr(one.state, name), getattr(other.state, name)
        # The file has six digits, and contact makes more of the difference.
        apart = (a - b).abs().amax(dim=1).median()
        assert apart < 1e-2, f"{name} apart by {apart:.5f}"


def test_the_shared_a1_stands_on_its_four_feet(shared):
    robot = load_mjcf(shared / "fixtures" / "unitree_a1" / "a1_nomesh.xml")
    assert robot.dof_adr.tolist() != sorted(robot.dof_adr), "the file's own joint order"
    pool = exact_pool([robot])
    backend = begin(pool)
    hold(backend, pool, 100)
    force = backend.state.foot_force[0]
    assert float(force.sum()) == pytest.approx(robot.total_mass_kg * 9.81, rel=0.01)
    assert float(force.min()) > 5.0, f"{force} N"


def test_each_joint_of_the_shared_a1_goes_where_it_is_told(shared):
    robot = load_mjcf(shared / "fixtures" / "unitree_a1" / "a1_nomesh.xml")
    pool = lifted(exact_pool([robot]), 10.0)
    backend = begin(pool)
    target = torch.from_numpy(pool.default_pose + np.linspace(-0.3, 0.3, 12))
    for _ in range(40):
        backend.step(target)
    off = (backend.state.joint_position - target).abs().max()
    assert off < 0.03, f"{off:.3f} rad from its target"


def test_a_joint_without_limits_starts_at_its_scaled_angle(tmp_path):
    robot = imported_go2(tmp_path, unlimited="FL_calf")
    scale = {"reset.joint_position_scale": 0.9}
    pool = exact_pool([robot], 1, scale)
    start = canonical_position(robot, pool.start_qpos)[0]
    expected = 0.9 * robot.default_pose_rad
    assert start == pytest.approx(expected, abs=1e-6), f"{start} of {expected} rad"
