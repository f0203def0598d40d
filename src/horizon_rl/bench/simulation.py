"""What simulation costs: bare engine, backend, environment, in one run."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np
import torch
from mjbatch import Batch

from horizon_rl.bench.stopwatch import Stopwatch, finish
from horizon_rl.bench.timing import median_costs, resident_bytes
from horizon_rl.domains import AtLevels, paper_catalogue
from horizon_rl.physics import (
    PHYSICS_STEPS,
    WORLD_FIELDS,
    CpuBackend,
    cores_for_physics,
    make_backend,
    sample_pool,
)
from horizon_rl.physics.motors import with_servos
from horizon_rl.robots import REFERENCE, build_robot, generate, load_preset
from horizon_rl.support.errors import InputError
from horizon_rl.task import Scenarios, TaskCfg, VelocityEnv, draw_scenarios

STEPS = 50
"""Control steps per measurement."""
NUM_BODIES = 16
ROWS_PER_WORLD = 4
POOL_SIZE = 1024


@dataclass(frozen=True)
class Subject:
    """An environment over generated bodies with all seven groups wide open."""

    env: VelocityEnv
    scenarios: Scenarios
    actions: list[torch.Tensor]
    """One per control step, drawn in advance: drawing is not what is measured."""
    figures: dict[str, float]
    """What building it took."""


def build_subject(num_envs: int, num_threads: int, device: str) -> Subject:
    if num_envs < 1:
        raise InputError(f"--envs is {num_envs}; at least 1 is needed")
    rng = np.random.default_rng(0)
    before, began = resident_bytes(), time.perf_counter()
    bodies = [load_preset(REFERENCE), *generate(rng, NUM_BODIES - 1)]
    robots = [build_robot(body) for body in bodies]
    catalogue = paper_catalogue()
    wide = AtLevels(dict.fromkeys(catalogue.names, 1.0))
    backend = make_backend(robots[0], num_envs, device, num_threads)
    env = VelocityEnv(backend, TaskCfg())
    pool = sample_pool(robots, catalogue, wide, ROWS_PER_WORLD * num_envs, rng)
    scenarios = draw_scenarios(pool, env.cfg, rng)
    env.begin(scenarios, seed=0)
    finish(env.device)
    built = time.perf_counter()
    held = resident_bytes() - before
    sample_pool(robots, catalogue, wide, POOL_SIZE, rng)
    figures = {
        "build_s": built - began,
        f"pool_of_{POOL_SIZE}_s": time.perf_counter() - built,
        "kilobytes_per_world": held / num_envs / 1024,
    }
    generator = torch.Generator().manual_seed(0)
    actions = [torch.randn(num_envs, 12, generator=generator) for _ in range(STEPS)]
    actions = [action.to(env.device) for action in actions]
    return Subject(env, scenarios, actions, figures)


def measure_physics(
    num_envs: int, num_threads: int, repeats: int, device: str = "cpu"
) -> dict[str, float]:
    """Time the backend; on the CPU beside a bare mjbatch loop over the same motion."""
    subject = build_subject(num_envs, num_threads, device)
    backend, pool = subject.env.backend, subject.scenarios.pool
    everyone = torch.ones(num_envs, dtype=torch.bool, device=backend.device)
    rows = torch.arange(num_envs, device=backend.device)
    pose = torch.from_numpy(pool.default_pose[:num_envs]).to(backend.device)
    scale = subject.env.cfg.action_scale
    targets = [pose + scale * action for action in subject.actions]

    def step_backend() -> Iterator[None]:
        backend.reset(everyone, rows)
        for target in targets:
            backend.step(target)
            yield
        finish(backend.device)

    works = {"backend": lambda: num_envs * sum(1 for _ in step_backend())}
    if not isinstance(backend, CpuBackend):
        cost = median_costs(works, repeats)["backend"]
        return {"steps_per_s": 1.0 / cost, **subject.figures}
    bounds = [backend.torque_bounds.copy() for _ in step_backend()]
    works["bare"] = _bare_loop(subject, targets, bounds, num_threads)
    with cores_for_physics(backend):
        costs = median_costs(works, repeats)
    return {
        "steps_per_s": 1.0 / costs["backend"],
        "bare_steps_per_s": 1.0 / costs["bare"],
        "ratio": costs["bare"] / costs["backend"],
        **subject.figures,
    }


def measure_env(
    num_envs: int, num_threads: int, repeats: int, device: str = "cpu"
) -> dict[str, float]:
    """Time `env.step` with random actions, and the backend's part in it."""
    subject = build_subject(num_envs, num_threads, device)
    env = subject.env
    clock = Stopwatch.around(env.backend, "step", env.device)

    def step_env() -> int:
        env.begin(subject.scenarios, seed=0)
        clock.lap()
        for action in subject.actions:
            env.step(action)
        finish(env.device)
        shares.append(clock.lap())
        return STEPS * num_envs

    shares: list[float] = []
    with cores_for_physics(env.backend):
        cost = median_costs({"env": step_env}, repeats)["env"]
    physics_cost = median(shares[1:]) / (STEPS * num_envs)
    return {
        "steps_per_s": 1.0 / cost,
        "physics_steps_per_s": 1.0 / physics_cost,
        "ratio": physics_cost / cost,
        **subject.figures,
    }


def _bare_loop(
    subject: Subject,
    targets: list[torch.Tensor],
    bounds: list[np.ndarray],
    num_threads: int,
) -> Callable[[], int]:
    """Return a plain mjbatch loop over the same worlds: the limit.

    It leaves out what the backend adds: bounds that follow the speed in every physics
    step (here they are held for the four of a control step, so that the robots move
    alike and one call does them all) and the task's view of the state.
    """
    backend, pool = subject.env.backend, subject.scenarios.pool
    n = backend.num_worlds
    batch = Batch(with_servos(backend.robot.model), n, num_threads)
    for name in WORLD_FIELDS:
        batch.expand(name)[:] = pool.fields[name][:n]
    limits = batch.expand("actuator_forcerange")
    qpos, qvel, ctrl = (batch.bind(name) for name in ("qpos", "qvel", "ctrl"))
    controls = [target.numpy() for target in targets]

    def loop() -> int:
        qpos[:], qvel[:] = pool.start_qpos[:n], pool.start_qvel[:n]
        for control, bound in zip(controls, bounds, strict=True):
            ctrl[:], limits[:] = control, bound
            batch.step(nstep=PHYSICS_STEPS)
        return STEPS * n

    return loop
