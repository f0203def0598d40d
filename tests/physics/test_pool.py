"""Pools: starts, derived constants, exact values, and what may share a batch."""

import copy
from dataclasses import fields, replace

import mujoco
import numpy as np
import pytest
import torch
from worlds import begin, exact_pool, hold, model_of, over_limits, some_robots

from canonical import canonical_position
from horizon_rl.domains import AtLevels, InRanges, Range, paper_catalogue
from horizon_rl.physics import CpuBackend, Pool, join_pools, sample_pool
from horizon_rl.physics.draft import DERIVED_FIELDS
from horizon_rl.physics.stance import reach_down
from horizon_rl.robots import (
    INTERVENTIONS,
    Robot,
    build_robot,
    load_body,
    load_preset,
    preset_names,
)
from horizon_rl.support.errors import InputError

PAYLOADS = [name for name in INTERVENTIONS if "payload" in name]
SHAPES = """
<mujoco>
  <asset>
    <mesh name="wedge" vertex="0 0 0  0.3 0 0  0 0.2 0  0 0 0.1  0.1 0.1 0.3"/>
  </asset>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body>
      <freejoint/>
      <geom type="sphere" size="0.1"/>
      <geom type="capsule" size="0.05 0.2"/>
      <geom type="cylinder" size="0.1 0.2"/>
      <geom type="ellipsoid" size="0.1 0.2 0.3"/>
      <geom type="box" size="0.1 0.2 0.3"/>
      <geom type="mesh" mesh="wedge"/>
    </body>
  </worldbody>
</mujoco>
"""


def gaps_m(pool, row: int) -> np.ndarray:
    """Distances to the floor of all that can touch it, at the start."""
    model = model_of(pool, row)
    data = mujoco.MjData(model)
    data.qpos[:] = pool.start_qpos[row]
    mujoco.mj_kinematics(model, data)
    floor = model.geom("floor").id
    touching = np.flatnonzero(model.geom_conaffinity == 1).tolist()
    distances = [
        mujoco.mj_geomDistance(model, data, floor, geom, 10.0, None)
        for geom in touching
    ]
    return np.array(distances)


def test_starts_neither_penetrate_nor_hang_in_the_air():
    pool = sample_pool(
        some_robots(100),
        paper_catalogue(),
        over_limits(),
        300,
        np.random.default_rng(4),
    )
    lowest_mm = 1e3 * np.array([gaps_m(pool, row).min() for row in range(len(pool))])
    assert 0.0 < lowest_mm.min(), f"penetrates by {-lowest_mm.min():.4f} mm"
    assert lowest_mm.max() < 2.0, f"hangs {lowest_mm.max():.4f} mm high"


def test_start_angles_are_scaled_and_kept_within_the_joints_ranges():
    robots = some_robots(100)
    rng = np.random.default_rng(5)
    pool = sample_pool(robots, paper_catalogue(), over_limits(), 1000, rng)
    start = canonical_position(pool.robot, pool.start_qpos)
    low, high = np.moveaxis(pool.fields["jnt_range"][:, 1:], 2, 0)
    assert np.all((low <= start) & (start <= high))
    asked = pool.default_pose * pool.instances["reset.joint_position_scale"]
    inside = (low <= asked) & (asked <= high)
    assert np.array_equal(start[inside], asked[inside])
    clamped = np.mean(~inside)
    assert 0.0 < clamped < 0.2, f"{100 * clamped:.1f} % of the angles were clamped"


def test_a_locked_knee_starts_locked_whatever_the_scale():
    robot = build_robot(load_body("go2+front-knees-locked"))
    pool = exact_pool([robot], 2, {"reset.joint_position_scale": [[0.5], [1.5]]})
    angles = pool.start_qpos[:, robot.qpos_adr[[2, 5]]]
    assert angles == pytest.approx(1.1 * -1.5, abs=6e-4), f"{angles} rad"


@pytest.mark.parametrize("geom", range(1, 7))
def test_reach_of_every_shape_agrees_with_mujocos_distance(geom):
    model = mujoco.MjModel.from_xml_string(SHAPES)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(geom)
    for _ in range(20):
        data.qpos[2] = 2.0
        data.qpos[3:7] = rng.normal(size=4)
        mujoco.mj_kinematics(model, data)
        up = data.geom_xmat[geom].reshape(3, 3)[2]
        reach = reach_down(model, geom, model.geom_size[geom][None], up[None])[0]
        gap = mujoco.mj_geomDistance(model, data, 0, geom, 10.0, None)
        assert data.geom_xpos[geom, 2] - reach == pytest.approx(gap, abs=1e-6)


def test_derived_constants_are_those_mujoco_computes():
    robots = some_robots(20)
    rng = np.random.default_rng(6)
    pool = sample_pool(robots, paper_catalogue(), over_limits(), 20, rng)
    for row in range(20):
        model = model_of(pool, row)
        for name in DERIVED_FIELDS:
            getattr(model, name)[:] = np.nan
        mujoco.mj_setConst(model, mujoco.MjData(model))
        for name in DERIVED_FIELDS:
            expected = getattr(model, name)
            found = pool.fields[name][row].reshape(expected.shape)
            assert np.array_equal(found, expected), f"{name} in row {row}"


def test_a_range_without_width_sets_an_exact_value():
    catalogue = paper_catalogue()
    exact = {name: Range(0.7, 0.7) for name in catalogue.parameters}
    robots, rng = [build_robot(load_preset("go2"))], np.random.default_rng(7)
    pool = sample_pool(robots, catalogue, InRanges(exact), 5, rng)
    for name, values in pool.instances.items():
        assert np.all(values == 0.7), name
    assert np.array_equal(
        pool.fields["body_mass"], np.tile(0.7 * robots[0].model.body_mass, (5, 1))
    )
    assert np.all(pool.effort == 0.7)


def test_a_pool_leaves_the_compiled_robot_as_it_was():
    robot = build_robot(load_preset("go2"))
    before = copy.deepcopy(robot.model)
    rng = np.random.default_rng(8)
    pool = sample_pool([robot], paper_catalogue(), over_limits(), 10, rng)
    hold(begin(pool), pool, 5)
    for name in pool.fields:
        assert np.array_equal(getattr(robot.model, name), getattr(before, name)), name
    assert robot.model.opt.integrator == before.opt.integrator


def test_parameters_reach_the_critic_as_their_place_in_the_limit_range():
    catalogue = paper_catalogue()
    robots = [build_robot(load_preset(name)) for name in ("go2", "b2")]
    for end, expected in (("low", -1.0), ("high", 1.0)):
        values = {n: getattr(p.limit, end) for n, p in catalogue.parameters.items()}
        pool = exact_pool(robots, 2, values)
        assert pool.parameters.shape == (2, 46)
        assert pool.parameters == pytest.approx(expected), "whatever the body"


def test_bodies_are_described_relative_to_go2():
    robots = [build_robot(load_preset(name)) for name in ("go2", "b2")]
    pool = exact_pool(robots, 2)
    assert pool.body[0] == pytest.approx(1.0)
    ratio = robots[1].body_mass_kg / robots[0].body_mass_kg
    assert pool.body[1, 0] == pytest.approx(ratio), f"{pool.body[1]}"


@pytest.mark.parametrize("name", PAYLOADS)
def test_a_payload_is_a_batch_of_its_own(name):
    robot = build_robot(load_body(f"go2+{name}"))
    pool = exact_pool([robot], 4, {"mass.scale": [0.8, 1.0, 1.2, 1.4]})
    backend = begin(pool)
    hold(backend, pool, 50)
    assert backend.state.healthy.all()
    load = backend.state.foot_force.sum(dim=1).numpy()
    assert np.all(load > 0.5 * robot.total_mass_kg * 9.81 * 0.8), f"{load} N"
    plain = build_robot(load_preset("go2"))
    with pytest.raises(InputError, match="cannot share a batch: simulate them apart"):
        exact_pool([plain, robot], 2)
    with pytest.raises(InputError, match=f"'go2\\+{name}' and 'go2' differ"):
        CpuBackend(plain, 4).load(pool)


def test_all_presets_and_damages_without_payload_share_a_batch():
    names = [*preset_names(), *(f"go2+{n}" for n in INTERVENTIONS if n not in PAYLOADS)]
    robots = [build_robot(load_body(name)) for name in names]
    pool = exact_pool(robots, len(robots))
    backend = begin(pool)
    hold(backend, pool, 50)
    assert backend.state.healthy.all()
    sunk = 1.0 - backend.state.root_position[:, 2].numpy() / pool.standing_height
    worst = names[int(np.argmax(sunk))]
    assert sunk.max() < 0.35, f"{worst} sank by {100 * sunk.max():.0f} % of its height"


def with_changed_model(robot: Robot, name: str, value: float) -> Robot:
    model = copy.deepcopy(robot.model)
    getattr(model, name)[...] = value
    return replace(robot, name="changed", model=model)


@pytest.mark.parametrize("field", ["dof_frictionloss", "geom_solimp", "jnt_stiffness"])
def test_same_names_but_other_shared_numbers_are_refused(field):
    robot = build_robot(load_preset("go2"))
    other = with_changed_model(robot, field, 0.5)
    with pytest.raises(InputError, match=f"'changed' and 'go2' differ.*{field}"):
        exact_pool([robot, other], 2)


def test_a_backend_needs_no_row_of_its_own_for_a_world_that_does_not_reset():
    pool = exact_pool([build_robot(load_preset("go2"))], 2, {"mass.scale": [1.0, 2.0]})
    backend = begin(pool)
    hold(backend, pool, 10)
    before = backend._qpos[1].copy()
    backend.reset(torch.tensor([True, False]), torch.tensor([1, -1]))
    assert np.array_equal(backend._qpos[0], pool.start_qpos[1])
    assert np.array_equal(backend._qpos[1], before)
    assert np.array_equal(backend._fields["body_mass"][0], pool.fields["body_mass"][1])


def test_joined_pools_are_their_parts_one_after_the_other():
    robots, rng = some_robots(5), np.random.default_rng(7)
    levels = AtLevels({"mass": 0.5, "com": 1.0})
    parts = [sample_pool(robots, paper_catalogue(), levels, n, rng) for n in (4, 1, 3)]
    joined = join_pools(parts)
    assert len(joined) == 8 and joined.robot is parts[0].robot
    for field in fields(Pool):
        if field.name == "robot":
            continue
        whole = getattr(joined, field.name)
        named = isinstance(whole, dict)
        for key in whole if named else [None]:
            column = whole[key] if named else whole
            first = 0
            for part in parts:
                expected = getattr(part, field.name)
                expected = expected[key] if named else expected
                found = column[first : first + len(part)]
                np.testing.assert_array_equal(found, expected, f"{field.name} {key}")
                first += len(part)
            assert first == len(column)


def test_worlds_of_a_joined_pool_move_as_in_their_own():
    robots, rng = some_robots(3), np.random.default_rng(8)
    parts = [
        sample_pool(robots, paper_catalogue(), over_limits(), n, rng) for n in (2, 3)
    ]
    ends = []
    for pool in (*parts, join_pools(parts)):
        backend = begin(pool)
        hold(backend, pool, 10)
        ends.append(backend.state.joint_position.clone())
    assert torch.equal(torch.cat(ends[:2]), ends[2])


def test_pools_of_different_robots_are_not_joined():
    pools = [
        sample_pool(
            [build_robot(load_preset(name))],
            paper_catalogue(),
            AtLevels({}),
            2,
            np.random.default_rng(0),
        )
        for name in ("go2", "a1")
    ]
    with pytest.raises(InputError, match="different robots"):
        join_pools(pools)
