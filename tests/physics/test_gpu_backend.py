"""The GPU backend against the CPU's: the same worlds, resets, pushes and troubles.

Without a GPU the same kernels run on Warp's CPU device.
"""

from dataclasses import fields

import numpy as np
import pytest
import torch
from gpu_worlds import (
    DEVICE,
    REPEATABLE,
    GpuBackend,
    apart,
    begin_gpu,
    everyone,
    trot,
    wp,
)
from test_imported_robot import imported_go2
from worlds import begin, exact_pool, hold, trajectory, varied_targets

from horizon_rl.domains import (
    AtLevels,
    Catalogue,
    paper_catalogue,
    shipped_catalogue,
)
from horizon_rl.physics import Backend, Pool, make_backend, sample_pool, torque_bounds
from horizon_rl.robots import (
    Robot,
    build_robot,
    generate,
    load_body,
    load_preset,
)
from horizon_rl.support.errors import InputError

SECOND = 50
"""Control steps."""


def draw_pool(
    robots: list[Robot],
    n: int,
    level: float,
    seed: int = 0,
    catalogue: Catalogue | None = None,
) -> Pool:
    """Draw worlds with all groups at one level; on flat ground."""
    rng = np.random.default_rng(seed)
    catalogue = catalogue or paper_catalogue()
    groups = [name for name in catalogue.names if name != "terrain"]
    levels = AtLevels(dict.fromkeys(groups, level))
    return sample_pool(robots, catalogue, levels, n, rng)


def mixed_pool(n: int, level: float, seed: int = 0, name: str = "paper") -> Pool:
    """Go2 and three generated bodies."""
    bodies = [load_preset("go2"), *generate(np.random.default_rng(seed), 3)]
    robots, catalogue = [build_robot(body) for body in bodies], shipped_catalogue(name)
    return draw_pool(robots, n, level, seed, catalogue)


def assert_same(one: np.ndarray, other: np.ndarray, what: str = "") -> None:
    """To the bit where the device allows, else within what a second may blur."""
    if REPEATABLE:
        assert np.array_equal(one, other), f"{what}: by {np.abs(one - other).max()}"
    else:
        assert np.median(np.abs(one - other).max(axis=1)) < 1e-3, what


def assert_close_to_the_cpu(
    pool: Pool, control_steps: int = SECOND // 2, begin_gpu=begin_gpu
) -> None:
    """Trot for a while, pushed half way; most worlds must end in one place.

    Most, not all: where a foot is a tenth of a micrometre above the ground, float32
    decides whether it touches, and a robot that trots blindly does not forget it.
    """
    gpu, cpu = begin_gpu(pool), begin(pool)
    targets = trot(pool, control_steps)
    gpu.step(targets[0])
    cpu.step(targets[0])
    first = apart(gpu, cpu)
    assert first["root_position"].max() < 1e-6, f"{first}"
    assert first["joint_position"].max() < 1e-5, f"{first}"
    assert first["torque"].max() < 1e-2, f"{first}"
    assert first["foot_force"].max() < 0.1, f"{first}"
    for step, target in enumerate(targets[1:]):
        if step == control_steps // 2:
            push = torch.from_numpy(pool.push_velocity[:, 0])
            gpu.push(push)
            cpu.push(push)
        gpu.step(target)
        cpu.step(target)
    assert float(cpu.state.foot_force.max()) > 1.0, "not in contact"
    error = {name: float(values.median()) for name, values in apart(gpu, cpu).items()}
    assert error["root_position"] < 1e-3, f"{error}"
    assert error["joint_position"] < 0.01, f"{error}"
    assert torch.equal(gpu.state.healthy.cpu(), cpu.state.healthy)
    assert gpu.counters == cpu.counters


@pytest.mark.slow
@pytest.mark.parametrize("name", ["paper", "extended"])
@pytest.mark.parametrize("level", [0.0, 0.5])
def test_a_trotting_second_ends_where_the_cpus_does(level, name):
    assert_close_to_the_cpu(mixed_pool(8, level, name=name), SECOND)


def test_dry_friction_has_room_where_only_worlds_have_it():
    # The model is compiled without friction; its rows must still all fit.
    pool = mixed_pool(4, 1.0, name="extended")
    assert pool.fields["dof_frictionloss"][:, 6:].min() > 0.0
    backend = begin_gpu(pool)
    for target in varied_targets(pool, 20):
        backend.step(target)
    assert backend.counters.overflow == 0
    assert int(backend._data.nf.numpy().min()) == 12, "rows of friction"


@pytest.mark.parametrize(
    "name", ["go2+front-knees-locked", "go2+hind-stilts", "go2+two-payloads"]
)
def test_interventions_move_as_on_the_cpu(name):
    assert_close_to_the_cpu(draw_pool([build_robot(load_body(name))], 5, 0.0))


def test_an_imported_robot_moves_as_on_the_cpu(tmp_path):
    assert_close_to_the_cpu(draw_pool([imported_go2(tmp_path)], 5, 0.5))


def test_a_locked_knee_holds_as_on_the_cpu_while_the_robot_thrashes():
    # mujoco_warp alone holds a joint by its nearer limit: then it gives way further.
    pool = exact_pool([build_robot(load_body("go2+front-knees-locked"))], 4)
    gpu, cpu = begin_gpu(pool), begin(pool)
    gave_way = {gpu: 0.0, cpu: 0.0}
    for target in varied_targets(pool, 30):
        for backend in gave_way:
            backend.step(target)
            knees = backend.state.joint_position[:, [2, 5]]
            play = float((knees + 1.65).abs().max())
            gave_way[backend] = max(play, gave_way[backend])
    assert gave_way[gpu] == pytest.approx(gave_way[cpu], rel=0.05), f"{gave_way}"


def test_mixed_bodies_move_as_each_alone():
    pool = mixed_pool(6, 0.5)
    together, targets = begin_gpu(pool), trot(pool, 15)
    for target in targets:
        together.step(target)
    for world in (0, 3):
        alone = GpuBackend(pool.robot, 1, DEVICE)
        alone.load(pool)
        alone.reset(torch.tensor([True]), torch.tensor([world]))
        for target in targets:
            alone.step(target[world : world + 1])
        there = trajectory(together)[world : world + 1]
        assert trajectory(alone) == pytest.approx(there, abs=2e-3), f"{world}"


def test_a_reset_by_mask_touches_only_the_masked_worlds():
    pool = mixed_pool(6, 0.5)
    backend = begin_gpu(pool)
    run(backend, trot(pool, 10))
    before, rows = trajectory(backend), backend._rows.clone()
    seen = {
        f.name: getattr(backend.state, f.name).clone() for f in fields(backend.state)
    }
    mask = torch.tensor([True, False, False, True, False, False])
    backend.reset(mask, torch.full((6,), 2))
    others = (~mask).numpy()
    assert np.array_equal(trajectory(backend)[others], before[others])
    assert torch.equal(backend._rows[~mask], rows[~mask])
    for name, values in seen.items():
        assert torch.equal(getattr(backend.state, name)[~mask], values[~mask]), name
    fresh = begin_gpu(pool)
    for name, values in fresh._engine.items():
        there = backend._engine[name][mask]
        assert torch.equal(there, values[[2, 2]]), f"{name} outlived the reset"
    for field in fields(fresh.state):
        now = getattr(backend.state, field.name)[mask]
        assert torch.equal(now, getattr(fresh.state, field.name)[[2, 2]]), field.name


def test_a_reset_world_moves_as_a_fresh_one():
    pool = mixed_pool(4, 0.5)
    backend, fresh, targets = begin_gpu(pool), begin_gpu(pool), trot(pool, 12)
    run(backend, varied_targets(pool, 8))
    backend.reset(everyone(pool), torch.arange(4))
    run(backend, targets)
    run(fresh, targets)
    assert_same(trajectory(backend), trajectory(fresh))


def test_a_push_adds_exactly_what_it_says():
    pool = mixed_pool(3, 0.0)
    backend = begin_gpu(pool)
    run(backend, trot(pool, 5))
    before = backend._engine["qvel"].clone()
    push = torch.tensor([[5.0, -5.0], [0.0, 0.0], [-0.25, 1.5]], device=DEVICE)
    backend.push(push)
    after = backend._engine["qvel"]
    assert torch.equal(after[:, :2], before[:, :2] + push)
    assert torch.equal(after[:, 2:], before[:, 2:])
    assert torch.equal(backend.state.linear_velocity, after[:, :3])


def test_torque_bounds_are_those_of_the_motor_model(monkeypatch):
    monkeypatch.setattr("horizon_rl.physics.gpu.PHYSICS_STEPS", 1)
    pool = mixed_pool(4, 1.0)
    backend = begin_gpu(pool)
    backend._engine["qvel"][:, 6:18] *= 20.0
    speed = backend._engine["qvel"][:, 6:18].cpu().double().numpy()
    backend.step(trot(pool, 1)[0])
    expected = np.zeros((4, 12, 2))
    torque_bounds(speed, pool.effort, pool.velocity_limit, out=expected)
    found = backend.torque_bounds.cpu().numpy()
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-4)
    torque = backend.state.torque.cpu().numpy()
    assert np.all(torque <= expected[..., 1] + 1e-3)
    assert np.all(torque >= expected[..., 0] - 1e-3)


TROUBLES = {"NaN": float("nan"), "infinite": float("inf"), "runaway": 1e4}
TROUBLED = 2
"""The world that has the trouble."""


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_bad_velocity_stays_in_its_world_and_ends_with_a_reset(trouble, untroubled):
    push = torch.zeros(4, 2)
    push[TROUBLED, 0] = TROUBLES[trouble]
    check_trouble(
        untroubled, lambda backend, target: (backend.push(push), backend.step(target))
    )


def test_a_bad_target_stays_in_its_world_and_ends_with_a_reset(untroubled):
    def trouble(backend: Backend, target: torch.Tensor) -> None:
        bad = target.clone()
        bad[TROUBLED, 7] = torch.nan
        backend.step(bad)

    check_trouble(untroubled, trouble)


@pytest.fixture(scope="module")
def untroubled() -> tuple[Pool, torch.Tensor, list[np.ndarray]]:
    """Worlds that trot, one of them reset half way: pool, targets, what each step saw."""
    pool = mixed_pool(4, 0.5)
    backend, targets, seen = begin_gpu(pool), trot(pool, 10), []
    for _ in range(2):
        for target in targets:
            backend.step(target)
            seen.append(trajectory(backend))
        backend.reset(torch.arange(4) == TROUBLED, torch.arange(4))
    assert backend.counters.unhealthy == 0
    return pool, targets, seen


def check_trouble(untroubled, make_trouble) -> None:
    pool, targets, seen = untroubled
    troubled, others = begin_gpu(pool), torch.arange(4) != TROUBLED
    for step, target in enumerate(targets):
        if step == 3:
            make_trouble(troubled, target)
        else:
            troubled.step(target)
        assert torch.equal(troubled.state.healthy.cpu(), others | (step < 3)), step
        assert_same(trajectory(troubled)[others], seen[step][others], f"step {step}")
    assert troubled.counters.unhealthy == 7
    troubled.reset(~others, torch.arange(4))
    run(troubled, targets)
    assert troubled.state.healthy.all()
    assert_same(trajectory(troubled), seen[-1])
    assert troubled.counters.unhealthy == 7, "a cured world counts no more"


def test_a_nan_in_the_solvers_spare_rows_is_gone_after_a_reset():
    pool = mixed_pool(3, 0.0)
    backend = begin_gpu(pool)
    hold(backend, pool, 5)
    wp.to_torch(backend._data.efc.J)[1, 13:] = torch.nan  # Past the feet's 12 rows.
    hold(backend, pool, 1)
    assert backend.state.healthy.tolist() == [True, False, True]
    backend.reset(~backend.state.healthy, torch.arange(3))
    hold(backend, pool, 5)
    assert backend.state.healthy.all()


def test_a_restored_snapshot_goes_on_as_before_also_elsewhere():
    pool = mixed_pool(4, 0.5)
    backend, targets = begin_gpu(pool), trot(pool, 10)
    run(backend, targets)
    backend.push(torch.tensor([[0.0, 0.0]] * 3 + [[torch.nan, 0.0]]))
    backend.step(targets[0])
    snapshot = backend.snapshot()
    seen = {
        f.name: getattr(backend.state, f.name).clone() for f in fields(backend.state)
    }
    run(backend, targets)
    first = trajectory(backend)
    other = begin_gpu(mixed_pool(4, 1.0, seed=1))
    for again in (backend, other):
        again.restore(snapshot)
        for name, values in seen.items():
            assert torch.equal(getattr(again.state, name), values), name
        run(again, targets)
        assert_same(trajectory(again), first)
        assert again.state.healthy.tolist() == [True, True, True, False]


def test_contacts_that_do_not_fit_are_counted():
    pool = mixed_pool(4, 0.0)
    roomy, cramped = begin_gpu(pool), begin_gpu(pool, contacts_per_world=1)
    for backend in (roomy, cramped):
        hold(backend, pool, 8)
    assert roomy.counters.overflow == 0
    # The room is shared: which world lost a contact, the engine does not say.
    assert cramped.counters.overflow > 0
    assert cramped.counters.overflow % 4 == 0


def test_counters_outlive_worlds_that_are_made_again():
    pool, other = mixed_pool(2, 0.5), mixed_pool(2, 0.5, name="extended")
    assert other.fields.keys() > pool.fields.keys(), "else nothing is made again"
    backend = begin_gpu(pool, contacts_per_world=1)
    assert backend.counters.overflow == 0, "trying the kernels out counts nothing"
    hold(backend, pool, 8)
    before = backend.counters
    assert before.overflow > 0
    backend.load(other)
    assert backend.counters == before


def test_constraints_that_do_not_fit_are_counted_by_world():
    pool = mixed_pool(2, 0.0)
    backend = begin_gpu(pool, constraints_per_world=6)
    backend._engine["qpos"][1, 2] += 5.0  # In the air: no contact to lose.
    hold(backend, pool, 8)
    assert 0 < backend.counters.overflow <= 8, f"{backend.counters}"


def test_the_room_for_contacts_is_what_the_body_can_have():
    backend = begin_gpu(exact_pool([build_robot(load_preset("go2"))], 1))
    # Trunk 4, feet 1 each, thighs 2 each; 3 rows each, and 2 limits for 12 joints.
    assert backend._data.naconmax == 16
    assert backend._data.njmax == 16 * 3 + 24


def test_another_structure_is_refused():
    backend = begin_gpu(exact_pool([build_robot(load_preset("go2"))], 1))
    with pytest.raises(InputError, match="differ in structure"):
        backend.load(exact_pool([build_robot(load_body("go2+payload-3kg"))], 1))


def test_devices_that_are_not_there_are_refused_with_what_to_do(monkeypatch):
    robot = build_robot(load_preset("go2"))
    with pytest.raises(InputError, match="Accepted: auto, cpu, cuda"):
        make_backend(robot, 1, "gpu")
    with monkeypatch.context() as patch:
        patch.setattr(torch.cuda, "is_available", lambda: False)
        assert make_backend(robot, 1, "auto").device.type == "cpu"
        with pytest.raises(InputError, match="torch sees no GPU.*Accepted: auto, cpu"):
            make_backend(robot, 1, "cuda")
    monkeypatch.setattr("horizon_rl.physics.select.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"-e '\.\[gpu\]'"):
        make_backend(robot, 1, "cuda")


def test_too_many_worlds_for_the_memory_are_refused(monkeypatch):
    def run_out(*args, **kwargs):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 TiB")

    monkeypatch.setattr("mujoco_warp.make_data", run_out)
    robot = build_robot(load_preset("go2"))
    with pytest.raises(InputError, match="7 worlds do not fit.*try fewer"):
        GpuBackend(robot, 7, DEVICE)


def run(backend: Backend, targets: torch.Tensor) -> None:
    for target in targets:
        backend.step(target)
