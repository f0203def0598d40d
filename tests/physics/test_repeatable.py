"""The same seed gives the same physics, to the bit."""

from dataclasses import fields

import numpy as np
import pytest
import torch
from worlds import begin, over_limits, some_robots, trajectory, varied_targets

from horizon_rl.domains import paper_catalogue
from horizon_rl.physics import (
    WORLD_FIELDS,
    CpuBackend,
    Pool,
    WorldState,
    sample_pool,
)

NUM_WORLDS = 48
STEPS = 100


def draw_pool(seed: int = 0) -> Pool:
    rng = np.random.default_rng(seed)
    return sample_pool(
        some_robots(20), paper_catalogue(), over_limits(), NUM_WORLDS, rng
    )


def run(backend: CpuBackend, pool: Pool, steps: int = STEPS) -> np.ndarray:
    """Step through varied targets; return the whole trajectory."""
    states = []
    for step, target in enumerate(varied_targets(pool, steps)):
        if step == steps // 2:
            backend.push(torch.from_numpy(pool.push_velocity[:, 0]))
        backend.step(target)
        states.append(trajectory(backend))
    return np.array(states)


def copied(state: WorldState) -> dict[str, torch.Tensor]:
    return {field.name: getattr(state, field.name).clone() for field in fields(state)}


def assert_same(one: WorldState, other: dict[str, torch.Tensor]) -> None:
    for name, values in other.items():
        assert torch.equal(getattr(one, name), values), name


def test_pools_of_one_seed_are_equal_and_of_another_differ():
    one, same, other = draw_pool(), draw_pool(), draw_pool(1)
    for name, values in one.fields.items():
        assert np.array_equal(values, same.fields[name]), name
    assert np.array_equal(one.start_qpos, same.start_qpos)
    assert not np.array_equal(one.start_qpos, other.start_qpos)


def test_one_and_two_threads_give_the_same_trajectories():
    pool = draw_pool()
    one, two = (run(begin(pool, threads), draw_pool()) for threads in (1, 2))
    assert np.array_equal(one, two), f"apart by {np.abs(one - two).max()}"


def test_a_worlds_path_does_not_depend_on_who_shares_the_batch():
    pool = draw_pool()
    together, alone = begin(pool), CpuBackend(pool.robot, 1)
    alone.load(pool)
    alone.reset(torch.tensor([True]), torch.tensor([7]))
    for target in varied_targets(pool, STEPS):
        together.step(target)
        alone.step(target[7:8])
    assert np.array_equal(trajectory(together)[7], trajectory(alone)[0])


def test_restoring_a_snapshot_continues_exactly():
    pool = draw_pool()
    backend = begin(pool)
    run(backend, pool, 30)
    snapshot, seen = backend.snapshot(), copied(backend.state)
    first = run(backend, pool)
    backend.reset(
        torch.ones(NUM_WORLDS, dtype=torch.bool), torch.zeros(NUM_WORLDS).int()
    )
    run(backend, pool, 10)
    backend.restore(snapshot)
    assert_same(backend.state, seen)  # Contact forces too, which no state holds.
    assert np.array_equal(first, run(backend, pool))


def test_a_snapshot_serves_another_backend_and_more_than_once():
    pool = draw_pool()
    backend = begin(pool)
    run(backend, pool, 30)
    snapshot = backend.snapshot()
    first = run(backend, pool)
    other = CpuBackend(pool.robot, NUM_WORLDS, 1)
    other.load(draw_pool(1))
    for _ in range(2):
        other.restore(snapshot)
        assert np.array_equal(first, run(other, pool))


def test_a_snapshot_keeps_an_unhealthy_world_unhealthy(in_tmp):
    pool = draw_pool()
    backend = begin(pool)
    push = torch.zeros(NUM_WORLDS, 2)
    push[3] = torch.nan
    backend.push(push)
    run(backend, pool, 2)
    assert not backend.state.healthy[3]
    snapshot = backend.snapshot()
    everyone = torch.ones(NUM_WORLDS, dtype=torch.bool)
    backend.reset(everyone, torch.arange(NUM_WORLDS))
    assert backend.state.healthy.all()
    backend.restore(snapshot)
    assert not backend.state.healthy[3]


@pytest.mark.parametrize("between", [0, 1, 50])
def test_resets_to_one_row_start_and_run_alike(between):
    pool = draw_pool()
    backend = begin(pool)
    start, before = trajectory(backend), backend.snapshot()
    seen = copied(backend.state)
    first = run(backend, pool)
    everyone, rows = torch.ones(NUM_WORLDS, dtype=torch.bool), torch.arange(NUM_WORLDS)
    for _ in range(3):
        backend.reset(everyone, rows.flip(0))
        run(backend, pool, between)
        backend.reset(everyone, rows)
    assert np.array_equal(trajectory(backend), start)
    assert_same(backend.state, seen)
    for name, values in backend.snapshot().items():
        if name in WORLD_FIELDS:
            assert np.array_equal(values, before[name]), f"{name} accumulates"
    assert np.array_equal(first, run(backend, pool))


def test_resetting_some_worlds_leaves_the_others_alone():
    pool = draw_pool()
    backend, undisturbed = begin(pool), begin(pool)
    mask = torch.arange(NUM_WORLDS) % 3 == 0
    for step, target in enumerate(varied_targets(pool, STEPS)):
        if step % 10 == 5:
            backend.reset(mask, torch.randint(NUM_WORLDS, (NUM_WORLDS,)))
        backend.step(target)
        undisturbed.step(target)
    others = ~mask.numpy()
    one, other = trajectory(backend)[others], trajectory(undisturbed)[others]
    assert np.array_equal(one, other), f"apart by {np.abs(one - other).max()}"
