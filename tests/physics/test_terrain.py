"""Rough ground: heights, starts, slides, and the batch against MuJoCo itself."""

import math
from dataclasses import dataclass, replace

import mujoco
import numpy as np
import pytest
import torch
from test_bit_for_bit import PlainWorld
from worlds import (
    GRAVITY,
    begin,
    com_velocity,
    exact_pool,
    hold,
    model_of,
    rigid,
    varied_targets,
)

from horizon_rl.domains import (
    AtLevels,
    Catalogue,
    Range,
    paper_catalogue,
    shipped_catalogue,
)
from horizon_rl.physics import CONTROL_DT, Pool, build_pool, ground_for, sample_pool
from horizon_rl.physics.motors import with_servos
from horizon_rl.robots import (
    FLAT,
    TERRAIN,
    Ground,
    build_robot,
    generate,
    load_preset,
)
from horizon_rl.robots.terrain import KINDS, PERIOD_M
from horizon_rl.support.errors import InputError
from horizon_rl.task import TaskCfg, VelocityEnv, draw_scenarios

CATALOGUE = Catalogue(
    (*paper_catalogue().groups, shipped_catalogue("extended")["terrain"])
)
NUM_PATCHES = len(TERRAIN.patches)
SIZES = {"noise": 0.1, "slope": 0.25, "stairs": 0.15, "blocks": 0.15}
"""One rough patch of each kind."""


@pytest.fixture(scope="module")
def robot():
    return build_robot(load_preset("go2"), TERRAIN)


def on_terrain(robots, n: int, **sizes) -> Pool:
    values = {f"terrain.{name}": size for name, size in sizes.items()}
    return exact_pool(robots, n, values, CATALOGUE)


def cast_down(model: mujoco.MjModel, places: np.ndarray) -> np.ndarray:
    """Find the height of a model's ground by rays from above, [n]."""
    data = mujoco.MjData(model)
    data.qpos[:2] = 100.0  # Out of the way.
    mujoco.mj_kinematics(model, data)
    down, hit = np.array([0.0, 0.0, -1.0]), np.zeros(1, np.int32)
    return np.array(
        [
            9.0 - mujoco.mj_ray(model, data, [*xy, 9.0], down, None, 1, -1, hit)
            for xy in places
        ]
    )


@pytest.mark.parametrize("patch", range(NUM_PATCHES))
def test_heights_are_those_of_the_height_field_also_on_tensors(robot, patch):
    rng = np.random.default_rng(patch)
    places = rng.uniform(-4.7, 4.7, (50, 2))  # The margins too.
    model = robot.model
    model.geom("floor").dataid[:] = patch
    heights = cast_down(model, places)
    model.geom("floor").dataid[:] = 0
    assert TERRAIN.height_at(places, patch) == pytest.approx(heights, abs=1e-6)
    far = places + PERIOD_M * np.array((3.0, -2.0))
    assert TERRAIN.height_at(far, patch) == pytest.approx(heights, abs=1e-6)
    on_device = TERRAIN.on(lambda a: torch.from_numpy(a).float())
    found = on_device.height_at(
        torch.from_numpy(places).float(), torch.full((50,), float(patch))
    )
    # In float32 a place beside a riser may lie on it.
    assert np.quantile(np.abs(found.numpy() - heights), 0.9) < 1e-5


def test_a_place_that_is_no_number_reads_no_memory_of_others():
    on_device = TERRAIN.on(torch.from_numpy)
    places = torch.tensor([[math.nan, 0.0], [math.inf, 1.0], [1e30, -1e30]])
    heights = on_device.height_at(places, torch.tensor([3, 20, 41]))
    assert heights.shape == (3,)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_sizes_are_what_they_say(kind):
    numbers = [n for n, (k, _) in enumerate(TERRAIN.patches) if k is kind]
    x = np.arange(-3.2, 3.2, 0.0125)
    grid = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
    for number, size in zip(numbers, kind.sizes, strict=True):
        heights = TERRAIN.height_at(grid, number).reshape(len(x), len(x))
        assert heights.min() == pytest.approx(0.0, abs=1e-9)
        if kind.name == "slope":
            rise = np.diff(heights, axis=1).max() / 0.0125
            assert math.atan(rise) == pytest.approx(size, abs=1e-4)
        elif kind.name == "stairs":
            treads = np.unique(heights[0][np.abs(np.diff(heights[0], append=0)) == 0.0])
            assert treads == pytest.approx(size * np.arange(9), abs=1e-6)
        else:
            assert heights.max() == pytest.approx(size, rel=0.02)


def test_a_row_has_one_of_the_kinds_that_are_not_flat_evenly():
    n = 4000
    rng = np.random.default_rng(0)
    drawn = AtLevels({"terrain": 1.0}).sample(CATALOGUE, n, rng)
    sizes = {kind.name: drawn[f"terrain.{kind.name}"] for kind in KINDS}
    patch, place, remaining = TERRAIN.choose(sizes, drawn["terrain.choice"])
    present = np.array([values != 0.0 for values in remaining.values()])
    assert present.sum(axis=0).max() == 1
    assert ((patch > 0) == present.any(axis=0)).all()
    shares = present.mean(axis=1)
    assert shares == pytest.approx(np.full(4, 0.25), abs=0.03), f"{shares}"
    for kind, values in zip(KINDS, present, strict=True):
        asked, got = sizes[kind.name][values], remaining[kind.name][values]
        step = kind.sizes[0]
        assert np.abs(asked - got).max() <= step / 2 + 1e-6, kind.name
        assert np.median(np.abs(got)) == pytest.approx(kind.sizes[-1] / 2, rel=0.15)
    assert np.abs(place).max() <= PERIOD_M / 2
    # Down begins at the top.
    down = remaining["stairs"] < 0.0
    heights = TERRAIN.height_at(place[down], patch[down])
    assert heights == pytest.approx(8 * -remaining["stairs"][down], abs=1e-6)


def test_one_that_is_named_alone_is_had_whatever_the_choice():
    for choice in (0.0, 0.4, 1.0):
        sizes = {kind.name: np.zeros(1) for kind in KINDS} | {
            "stairs": np.array([0.08])
        }
        patch, _, remaining = TERRAIN.choose(sizes, np.array([choice]))
        kind, size = TERRAIN.patches[patch[0]]
        assert (kind.name, size) == ("stairs", 0.08)
        assert remaining["stairs"][0] == 0.08


def test_robots_start_just_above_the_ground_and_stand_on_it(robot):
    rng = np.random.default_rng(1)
    pool = sample_pool([robot], CATALOGUE, AtLevels({"terrain": 1.0}), 96, rng)
    deepest = 0.0
    for row in range(96):
        model = model_of(pool, row)
        data = mujoco.MjData(model)
        data.qpos[:] = pool.start_qpos[row]
        mujoco.mj_forward(model, data)
        deepest = min([deepest, *(contact.dist for contact in data.contact)])
    assert deepest > -0.012, f"{deepest} m in the ground"
    backend = begin(pool)
    hold(backend, pool, 50)
    position = backend.state.root_position.double().numpy()
    above = TERRAIN.above(position, pool.patch)
    # Who begins with a foot on a block of 15 cm and only holds its pose may topple.
    standing = (backend.state.foot_force > 1.0).sum(dim=1) >= 3
    assert standing.float().mean() > 0.95
    assert np.median(above) == pytest.approx(pool.standing_height[0], abs=0.03)
    assert backend.counters.overflow == 0


def test_the_task_measures_height_from_the_patch(robot):
    pool = on_terrain([robot], 2, stairs=[-0.15, 0.0])
    assert pool.start_qpos[:, 0].tolist() == [1.6, 0.0], "at the top of the stairs"
    cfg = TaskCfg()
    env = VelocityEnv(begin(pool), cfg)
    rng = np.random.default_rng(0)
    env.begin(draw_scenarios(pool, cfg, rng), seed=0, rows=torch.arange(2))
    assert pool.start_qpos[0, 2] - pool.start_qpos[1, 2] == pytest.approx(1.2, abs=0.01)
    heights = env.motion.height
    assert heights[0] == pytest.approx(float(heights[1]), abs=0.01)
    assert float(heights[1]) == pytest.approx(pool.standing_height[1], abs=0.02)


@pytest.mark.parametrize("angle_deg", [10.0, 20.0])
def test_a_robot_slides_on_a_slope_from_arctan_mu_on(angle_deg):
    angle = math.radians(angle_deg)
    friction = math.tan(angle) * np.array([0.5, 0.9, 1.1, 1.5])
    values = {"terrain.slope": angle, "contact.static_friction": friction}
    values["contact.dynamic_friction"] = friction
    pool = exact_pool([rigid(load_preset("go2"), TERRAIN)], 4, values, CATALOGUE)
    # On the slope, with its feet in its plane.
    normal = np.array([-math.sin(angle), 0.0, math.cos(angle)])
    foot_of_it = np.array([0.4, 0.0, math.tan(angle) * (2.0 - 0.4)])
    qpos = pool.start_qpos.copy()
    qpos[:, :3] = foot_of_it + (pool.standing_height[0] + 1e-3) * normal
    qpos[:, 3:7] = math.cos(angle / 2), 0.0, -math.sin(angle / 2), 0.0
    pool = replace(pool, start_qpos=qpos)
    backend, speeds = begin(pool), []
    down = np.array([-math.cos(angle), 0.0, -math.sin(angle)])
    for steps in (20, 10, 70, 10):
        hold(backend, pool, steps)
        speeds.append(com_velocity(pool, backend) @ down)
    early, late = (np.diff(speeds, axis=0) / (10 * CONTROL_DT))[[0, 2]]
    pull = GRAVITY * math.sin(angle)
    slides = pull - GRAVITY * friction * math.cos(angle)
    assert early[:2] == pytest.approx(slides[:2], abs=0.02 * pull), f"of {slides}"
    # What friction holds may creep, since it is soft, but gains no speed.
    assert np.abs(late[2:]).max() < 0.01 * pull, f"{late}"
    assert speeds[-1][2:].max() < 0.06


@dataclass(frozen=True)
class OnePatch(Ground):
    """A model with the one height field of a patch, as a user of MuJoCo would make it."""

    patch: int

    def add_to(self, spec: mujoco.MjSpec) -> None:
        heights = TERRAIN._grids[self.patch]
        rows, columns = heights.shape
        top = float(heights.max())
        spec.add_hfield(
            name="field",
            size=[4.8, 4.8, top, 0.5],
            nrow=rows,
            ncol=columns,
            userdata=heights.ravel(),
        )
        spec.worldbody.add_geom(
            name="floor",
            type=mujoco.mjtGeom.mjGEOM_HFIELD,
            hfieldname="field",
            contype=1,
            conaffinity=0,
        )

    def height_at(self, xy, patch=0):
        return TERRAIN.height_at(xy, self.patch)


def draw_rough(robot, n: int) -> Pool:
    rng = np.random.default_rng(4)
    levels = AtLevels(dict.fromkeys(CATALOGUE.names, 0.5) | {"terrain": 1.0})
    pool = sample_pool([robot], CATALOGUE, levels, 4 * n, rng)
    rough = np.flatnonzero(pool.patch)[:n]
    instances = {name: values[rough] for name, values in pool.instances.items()}
    return build_pool([robot], CATALOGUE, instances, np.zeros(n, dtype=int))


def test_worlds_on_different_patches_move_as_each_does_alone_in_mujoco(robot):
    n = 24
    pool = draw_rough(robot, n)
    assert len(set(pool.patch)) > 12
    worlds, backend = [], begin(pool)
    for row in range(n):
        plain = build_robot(load_preset("go2"), OnePatch(int(pool.patch[row])))
        drawn = {name: values[row] for name, values in pool.instances.items()}
        worlds.append(PlainWorld(plain, drawn))
        worlds[-1].start(pool.start_qpos[row], pool.start_qvel[row])
    stayed, qpos = np.ones(n, dtype=bool), pool.start_qpos
    for target in varied_targets(pool, 75):
        backend.step(target)
        for world, own in zip(worlds, target.numpy(), strict=True):
            world.control_step(own)
        qpos = np.array([world.data.qpos for world in worlds])
        # Those of plain MuJoCo walk on where the backend's are put back.
        stayed &= (np.abs(qpos[:, :2]) <= PERIOD_M / 2.0).all(axis=1)
    assert stayed.sum() > n // 2
    assert np.array_equal(qpos[stayed], backend._qpos[stayed])


def test_a_robot_that_leaves_a_period_finds_the_same_ground():
    """It slides down a slope across the period's end; plain MuJoCo's goes on there."""
    values = {"terrain.slope": -math.radians(15.0), "contact.static_friction": 0.05}
    pool = exact_pool([rigid(load_preset("go2"), TERRAIN)], 1, values, CATALOGUE)
    qpos = pool.start_qpos.copy()
    qpos[0, 0] = 3.0
    qpos[0, 2] -= math.tan(math.radians(15.0)) * 0.9
    pool = replace(pool, start_qpos=qpos)
    backend, model = begin(pool), with_servos(model_of(pool, 0))
    model.actuator_forcerange[:] = pool.effort[0][:, None] * (-1.0, 1.0)
    plain = mujoco.MjData(model)
    plain.qpos[:], plain.ctrl[:] = qpos[0], pool.default_pose[0]
    for _ in range(30):
        hold(backend, pool, 1)
        for _ in range(4):
            mujoco.mj_step(model, plain)
        assert abs(backend._qpos[0, 0]) <= PERIOD_M / 2.0
    assert 3.3 < plain.qpos[0] < 4.0, f"{plain.qpos[0]} m"
    plain.qpos[0] -= PERIOD_M
    assert plain.qpos == pytest.approx(backend._qpos[0], abs=1e-6)
    assert plain.qvel == pytest.approx(backend._qvel[0], abs=1e-5)


def test_a_foots_force_is_its_own_and_not_its_shins():
    bodies = [load_preset("go2"), *generate(np.random.default_rng(0), 5)]
    robots = [build_robot(body, TERRAIN) for body in bodies]
    pool = on_terrain(robots, 6, stairs=0.15)
    backend, near, robot = begin(pool), 0, robots[0]
    models = [model_of(pool, row) for row in range(6)]
    for target in varied_targets(pool, 80):
        backend.step(target)
        for row, model in enumerate(models):
            data = mujoco.MjData(model)
            data.qpos[:], data.qvel[:] = backend._qpos[row], backend._qvel[row]
            mujoco.mj_forward(model, data)
            forces, force = np.zeros(model.ngeom), np.zeros(6)
            for number, contact in enumerate(data.contact):
                mujoco.mj_contactForce(model, data, number, force)
                forces[contact.geom[1]] += force[0]
                way = contact.pos - data.geom_xpos[robot.foot_geom_ids]
                shin = model.geom(contact.geom[1]).name.endswith("shin")
                near += shin and np.linalg.norm(way, axis=1).min() < 0.08
            felt = data.sensordata[robot.foot_sensor_adr]
            assert felt == pytest.approx(forces[robot.foot_geom_ids], abs=1e-9)
    assert near > 20, "no shin was near enough to be mistaken for a foot"


def test_the_critic_is_told_what_a_world_has_not_what_was_drawn(robot):
    values = {"terrain.stairs": 0.083, "terrain.noise": 0.05, "terrain.choice": 0.1}
    pool = exact_pool([robot], 1, values, CATALOGUE)
    told = dict(
        zip(list(CATALOGUE.parameters)[-5:], pool.parameters[0, -5:], strict=True)
    )
    assert told["terrain.noise"] == pytest.approx(0.0), "0.05 of 0..0.1, in -1..1"
    assert told["terrain.stairs"] == pytest.approx(0.0), "not chosen: flat"
    pool = exact_pool([robot], 1, values | {"terrain.noise": 0.0}, CATALOGUE)
    assert pool.parameters[0, -3] == pytest.approx(0.08 / 0.15)
    assert pool.instances["terrain.stairs"][0] == 0.083


def test_flat_ground_is_the_plane_of_old_unless_terrain_is_asked_for():
    level = shipped_catalogue("extended").ranges({"mass": 1.0})
    assert ground_for(level) is FLAT
    assert ground_for({}) is FLAT
    assert ground_for({"terrain.noise": (Range(0.0, 0.0),)}) is FLAT
    assert ground_for(shipped_catalogue("extended").ranges({"terrain": 0.1})) is TERRAIN
    assert ground_for({"terrain.slope": np.array([-0.1])}) is TERRAIN


def test_stairs_under_a_robot_built_on_a_plane_are_refused():
    with pytest.raises(InputError, match=r"terrain\.stairs = 0\.1 needs robots"):
        on_terrain([build_robot(load_preset("go2"))], 2, stairs=0.1)
    with pytest.raises(InputError, match=r"terrain\.stairs = 0\.2 is impossible"):
        on_terrain([build_robot(load_preset("go2"), TERRAIN)], 1, stairs=0.2)


def test_a_flat_row_on_terrain_stands_as_on_the_plane(robot):
    rough = on_terrain([robot], 1)
    plane = exact_pool([build_robot(load_preset("go2"))], 1)
    heights = []
    for pool in (rough, plane):
        backend = begin(pool)
        hold(backend, pool, 100)
        heights.append(float(backend.state.root_position[0, 2]))
        assert (backend.state.foot_force > 1.0).all()
    assert heights[0] == pytest.approx(heights[1], abs=2e-3), f"{heights}"


@pytest.mark.parametrize("kind", SIZES)
def test_no_contact_is_lost_while_robots_thrash(robot, kind):
    pool = on_terrain([robot], 16, **{kind: SIZES[kind]})
    backend = begin(pool)
    for target in varied_targets(pool, 60):
        backend.step(target)
    assert backend.counters.overflow == 0
    assert backend.counters.unhealthy == 0
