"""Rough ground on the GPU backend: the CPU's experiments, patches by world, room.

Without a GPU the same kernels run on Warp's CPU device.
"""

import mujoco
import numpy as np
import pytest
import torch
from gpu_worlds import DEVICE, GpuBackend, apart, begin_gpu, everyone, trot, wp
from test_gpu_backend import assert_close_to_the_cpu
from test_terrain import (
    CATALOGUE,
    SIZES,
    draw_rough,
    on_terrain,
)
from test_terrain import (
    test_a_robot_slides_on_a_slope_from_arctan_mu_on as slides_from_arctan_mu_on,
)
from worlds import begin, hold, varied_targets

import mujoco_warp as mjw  # isort: skip  After gpu_worlds, which may skip.

from horizon_rl.domains import AtLevels
from horizon_rl.physics import Pool, sample_pool
from horizon_rl.physics.backend import Counters
from horizon_rl.robots import TERRAIN, build_robot, load_preset
from horizon_rl.robots.terrain import PERIOD_M


@pytest.fixture(autouse=True)
def on_the_gpu(monkeypatch):
    """Let the experiments begin on the GPU."""
    monkeypatch.setattr("test_terrain.begin", begin_gpu)


NUM_WORLDS = 8


@pytest.fixture(scope="module")
def robot():
    return build_robot(load_preset("go2"), TERRAIN)


@pytest.fixture(scope="module")
def backend(robot):
    """One for all: on a GPU making one takes longer than all that these tests do."""
    return GpuBackend(robot, NUM_WORLDS, DEVICE)


@pytest.fixture
def begin_again(backend):
    def begin_again(pool: Pool) -> GpuBackend:
        backend.load(pool)
        backend.reset(everyone(pool), torch.arange(NUM_WORLDS))
        return backend

    return begin_again


def ball_over_patches(capsule: bool) -> mujoco.MjModel:
    """A ball of a foot's size, or a capsule of a shank's, over patches."""
    spec, kinds = mujoco.MjSpec(), mujoco.mjtGeom
    TERRAIN.add_to(spec)
    body = spec.worldbody.add_body()
    body.add_freejoint()
    kind = kinds.mjGEOM_CAPSULE if capsule else kinds.mjGEOM_SPHERE
    body.add_geom(type=kind, size=[0.022, 0.1, 0.0], contype=0)
    return spec.compile()


def deepest(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_collision(model, data)
    return float(data.contact.dist.min()) if data.ncon else 1.0


@pytest.mark.parametrize("capsule", [False, True])
def test_the_deepest_contact_is_mujocos(capsule):
    names = [each.name for each, _ in TERRAIN.patches]
    roughest = [len(names) - 1 - names[::-1].index(kind) for kind in SIZES]
    n, rng = 100 * len(roughest), np.random.default_rng(0)
    model = ball_over_patches(capsule)
    data, patch = mujoco.MjData(model), np.repeat(roughest, 100)
    qpos, depth = np.zeros((n, 7), np.float32), np.zeros(n)
    qpos[:, :2], qpos[:, 3:] = rng.uniform(-3, 3, (n, 2)), rng.normal(size=(n, 4))
    qpos[:, 3:] /= np.linalg.norm(qpos[:, 3:], axis=1, keepdims=True)
    for row in range(n):
        model.geom("floor").dataid[:] = patch[row]
        low, high = -0.3, 2.0
        while high - low > 1e-4:  # Lower it until it is 2 mm in the ground.
            data.qpos[:] = qpos[row]
            data.qpos[2] = (low + high) / 2.0
            inside = deepest(model, data) < -0.002
            low, high = (data.qpos[2], high) if inside else (low, data.qpos[2])
        qpos[row, 2] = low
        data.qpos[:] = qpos[row]
        depth[row] = deepest(model, data)
    with wp.ScopedDevice(DEVICE):
        engine = mjw.put_model(model)
        worlds = mjw.make_data(model, n, nconmax=8, njmax=32)
        worlds.qpos = wp.array(qpos, dtype=float)
        engine.geom_dataid = wp.array(np.c_[patch, np.full(n, -1)], dtype=int)
        for stage in (mjw.kinematics, mjw.com_pos, mjw.collision):
            stage(engine, worlds)
        count = int(worlds.nacon.numpy()[0])
        found = np.ones(n)
        where = worlds.contact.worldid.numpy()[:count]
        np.minimum.at(found, where, worlds.contact.dist.numpy()[:count])
    assert np.abs(found - depth).max() < 2e-4, "its own rule: up to 0.14 m too deep"


@pytest.mark.parametrize("kind", SIZES)
def test_robots_stand_where_the_cpus_do(robot, begin_again, kind):
    # Less rough: where a robot that only holds its pose may topple, it topples anyhow.
    size = {kind: 0.4 * SIZES[kind]}
    choice = np.linspace(0, 1, NUM_WORLDS)
    pool = on_terrain([robot], NUM_WORLDS, **size, choice=choice)
    gpu, cpu = begin_again(pool), begin(pool)
    before = gpu.counters
    for backend in (gpu, cpu):
        hold(backend, pool, 30)
    found = apart(gpu, cpu)
    # Of several contacts of a foot the GPU keeps four.
    assert float(found["root_position"].median()) < 2e-3, f"{found}"
    assert float(found["joint_position"].median()) < 0.02, f"{found}"
    assert gpu.counters == before
    assert cpu.counters == Counters()


@pytest.mark.slow
def test_a_robot_slides_on_a_slope_from_arctan_mu_on():
    slides_from_arctan_mu_on(20.0)


def test_a_first_trotting_step_is_the_cpus(robot, begin_again):
    pool = draw_rough(robot, NUM_WORLDS)
    gpu, cpu = begin_again(pool), begin(pool)
    for target in trot(pool, 2):
        gpu.step(target)
        cpu.step(target)
    found = apart(gpu, cpu)
    assert float(found["root_position"].median()) < 1e-4, f"{found}"
    assert float(found["joint_position"].median()) < 1e-2, f"{found}"


def test_flat_rows_move_as_on_the_cpu(robot, begin_again):
    rng = np.random.default_rng(0)
    levels = AtLevels({"mass": 0.5, "contact": 0.5})
    pool = sample_pool([robot], CATALOGUE, levels, NUM_WORLDS, rng)
    assert not pool.patch.any()
    assert_close_to_the_cpu(pool, begin_gpu=begin_again)


def test_a_reset_gives_a_world_the_patch_of_its_row(robot, begin_again):
    pool = on_terrain([robot], NUM_WORLDS, stairs=[0.0, 0.05, -0.15] + 5 * [0.0])
    backend = begin_again(pool)
    hold(backend, pool, 2)
    patches = backend._model.geom_dataid.numpy()[:, robot.model.geom("floor").id]
    assert patches.tolist() == pool.patch.tolist()
    first = torch.arange(NUM_WORLDS) == 0
    backend.reset(first, torch.full((NUM_WORLDS,), 2))
    patches = backend._model.geom_dataid.numpy()[:, robot.model.geom("floor").id]
    assert patches.tolist() == [pool.patch[2], *pool.patch[1:]]
    hold(backend, pool, 25)
    assert float(backend.state.root_position[0, 2]) > 1.2, "on top of the stairs"
    snapshot = backend.snapshot()
    backend.reset(everyone(pool), torch.zeros(NUM_WORLDS, dtype=torch.long))
    assert float(backend.state.root_position[0, 2]) < 0.5
    backend.restore(snapshot)
    hold(backend, pool, 5)
    assert float(backend.state.root_position[0, 2]) > 1.2


def test_a_robot_that_leaves_a_period_is_put_back(robot, begin_again):
    pool = on_terrain([robot], NUM_WORLDS, noise=0.02)
    pool.start_qpos[:2, :2] = [[3.19, 0.0], [0.0, -3.19]]
    pool.start_qpos[:, 2] += 0.05
    backend, push = begin_again(pool), torch.zeros(NUM_WORLDS, 2, device=DEVICE)
    push[0, 0], push[1, 1] = 2.0, -2.0
    backend.push(push)
    hold(backend, pool, 2)
    place = backend.state.root_position[:, :2].cpu().numpy()
    assert place[0, 0] == pytest.approx(3.19 + 0.08 - PERIOD_M, abs=0.02)
    assert place[1, 1] == pytest.approx(-3.19 - 0.08 + PERIOD_M, abs=0.02)


def test_no_contact_is_lost_while_robots_thrash_or_lie(robot, begin_again):
    pool = draw_rough(robot, NUM_WORLDS)
    backend = begin_again(pool)
    before = backend.counters
    for target in varied_targets(pool, 25):
        backend.step(target)
    assert backend.counters == before


def test_the_room_for_contacts_is_what_the_body_can_have(backend):
    # Trunk, feet, thighs and shanks: 4 each; 3 rows each, and 2 limits for 12 joints.
    assert backend._data.naconmax == NUM_WORLDS * 13 * 4
    assert backend._data.njmax == 13 * 4 * 3 + 24
