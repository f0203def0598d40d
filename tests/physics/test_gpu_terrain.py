"""Rough ground on the GPU backend: the CPU's experiments, patches by world, room.

Without a GPU the same kernels run on Warp's CPU device.
"""
# MuJoCo's extension modules carry no type stubs.
# pyright: reportAttributeAccessIssue=false

import mujoco
import numpy as np
import pytest
import torch
from gpu_worlds import DEVICE, GpuBackend, apart, begin_gpu, trot, wp
from test_gpu_backend import assert_close_to_the_cpu
from test_terrain import (
    CATALOGUE,
    SIZES,
    OnePatch,
    draw_rough,
    on_terrain,
    test_a_robot_slides_on_a_slope_from_arctan_mu_on,  # noqa: F401
)
from worlds import begin, hold, varied_targets

import mujoco_warp as mjw  # isort: skip  After gpu_worlds, which may skip.

from horizon_rl.domains import AtLevels
from horizon_rl.physics import sample_pool
from horizon_rl.robots import TERRAIN, build_robot, load_preset
from horizon_rl.robots.terrain import PERIOD_M


@pytest.fixture(autouse=True)
def on_the_gpu(monkeypatch):
    """Let the experiments begin on the GPU."""
    monkeypatch.setattr("test_terrain.begin", begin_gpu)


@pytest.fixture(scope="module")
def robot():
    return build_robot(load_preset("go2"), TERRAIN)


def ball_on(patch: int, capsule: bool) -> mujoco.MjModel:
    """A ball of a foot's size, or a capsule of a shank's, over a patch."""
    spec, kinds = mujoco.MjSpec(), mujoco.mjtGeom
    OnePatch(patch).add_to(spec)
    spec.geom("floor").contype = spec.geom("floor").conaffinity = 1
    body = spec.worldbody.add_body()
    body.add_freejoint()
    kind = kinds.mjGEOM_CAPSULE if capsule else kinds.mjGEOM_SPHERE
    body.add_geom(type=kind, size=[0.022, 0.1, 0.0])
    return spec.compile()


def deepest(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_collision(model, data)
    return float(data.contact.dist.min()) if data.ncon else 1.0


@pytest.mark.parametrize("capsule", [False, True])
@pytest.mark.parametrize("kind", SIZES)
def test_the_deepest_contact_is_mujocos(kind, capsule):
    names = [each.name for each, _ in TERRAIN.patches]
    patch = len(names) - 1 - names[::-1].index(kind)  # The roughest.
    n, rng = 300, np.random.default_rng(patch)
    model = ball_on(patch, capsule)
    data = mujoco.MjData(model)
    qpos, depth = np.zeros((n, 7), np.float32), np.zeros(n)
    qpos[:, :2], qpos[:, 3:] = rng.uniform(-3, 3, (n, 2)), rng.normal(size=(n, 4))
    qpos[:, 3:] /= np.linalg.norm(qpos[:, 3:], axis=1, keepdims=True)
    for row in range(n):
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
        for stage in (mjw.kinematics, mjw.com_pos, mjw.collision):
            stage(engine, worlds)
        count = int(worlds.nacon.numpy()[0])
        found = np.ones(n)
        where = worlds.contact.worldid.numpy()[:count]
        np.minimum.at(found, where, worlds.contact.dist.numpy()[:count])
    assert np.abs(found - depth).max() < 2e-4, "its own rule: up to 0.14 m too deep"


@pytest.mark.parametrize("kind", SIZES)
def test_robots_stand_where_the_cpus_do(robot, kind):
    # Less rough: where a robot that only holds its pose may topple, it topples anyhow.
    size = {kind: 0.4 * SIZES[kind]}
    pool = on_terrain([robot], 6, **size, choice=np.linspace(0, 1, 6))
    gpu, cpu = begin_gpu(pool), begin(pool)
    for backend in (gpu, cpu):
        hold(backend, pool, 40)
    found = apart(gpu, cpu)
    # Of several contacts of a foot the GPU keeps four.
    assert float(found["root_position"].median()) < 2e-3, f"{found}"
    assert float(found["joint_position"].median()) < 0.02, f"{found}"
    assert gpu.counters == cpu.counters


def test_a_first_trotting_step_is_the_cpus(robot):
    pool = draw_rough(robot, 8)
    gpu, cpu = begin_gpu(pool), begin(pool)
    for target in trot(pool, 2):
        gpu.step(target)
        cpu.step(target)
    found = apart(gpu, cpu)
    assert float(found["root_position"].median()) < 1e-4, f"{found}"
    assert float(found["joint_position"].median()) < 1e-2, f"{found}"


def test_flat_rows_move_as_on_the_cpu(robot):
    rng = np.random.default_rng(0)
    levels = AtLevels({"mass": 0.5, "contact": 0.5})
    pool = sample_pool([robot], CATALOGUE, levels, 5, rng)
    assert not pool.patch.any()
    assert_close_to_the_cpu(pool)


def test_a_reset_gives_a_world_the_patch_of_its_row(robot):
    pool = on_terrain([robot], 3, stairs=[0.0, 0.05, -0.15])
    backend = begin_gpu(pool)
    hold(backend, pool, 10)
    patches = backend._model.geom_dataid.numpy()[:, robot.model.geom("floor").id]
    assert patches.tolist() == pool.patch.tolist()
    backend.reset(torch.tensor([True, False, False]), torch.tensor([2, 0, 0]))
    patches = backend._model.geom_dataid.numpy()[:, robot.model.geom("floor").id]
    assert patches.tolist() == [pool.patch[2], pool.patch[1], pool.patch[2]]
    hold(backend, pool, 25)
    assert float(backend.state.root_position[0, 2]) > 1.2, "on top of the stairs"
    snapshot = backend.snapshot()
    other = GpuBackend(robot, 3, DEVICE)
    other.load(pool)
    other.restore(snapshot)
    hold(other, pool, 10)
    assert float(other.state.root_position[0, 2]) > 1.2


def test_a_robot_that_leaves_a_period_is_put_back(robot):
    pool = on_terrain([robot], 2, noise=0.02)
    pool.start_qpos[:, :2] = [[3.19, 0.0], [0.0, -3.19]]
    pool.start_qpos[:, 2] += 0.05
    backend = begin_gpu(pool)
    backend.push(torch.tensor([[2.0, 0.0], [0.0, -2.0]], device=DEVICE))
    hold(backend, pool, 2)
    place = backend.state.root_position[:, :2].cpu().numpy()
    assert place[0, 0] == pytest.approx(3.19 + 0.08 - PERIOD_M, abs=0.02)
    assert place[1, 1] == pytest.approx(-3.19 - 0.08 + PERIOD_M, abs=0.02)


def test_no_contact_is_lost_while_robots_thrash_or_lie(robot):
    pool = draw_rough(robot, 16)
    backend = begin_gpu(pool)
    for target in varied_targets(pool, 25):
        backend.step(target)
    assert backend.counters.overflow == 0
    assert backend.counters.unhealthy == 0


def test_the_room_for_contacts_is_what_the_body_can_have(robot):
    backend = begin_gpu(on_terrain([robot], 1, stairs=0.05))
    # Trunk, feet, thighs and shanks: 4 each; 3 rows each, and 2 limits for 12 joints.
    assert backend._data.naconmax == 13 * 4
    assert backend._data.njmax == 13 * 4 * 3 + 24
