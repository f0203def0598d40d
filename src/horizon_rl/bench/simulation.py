"""What simulation costs: bare engine, backend, environment, in one run."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import torch
from mjbatch import Batch

from horizon_rl.bench.stopwatch import Stopwatch, finish
from horizon_rl.bench.timing import Sizes, median_costs
from horizon_rl.domains import AtLevels, Catalogue
from horizon_rl.physics import (
    PHYSICS_STEPS,
    CpuBackend,
    cores_for_physics,
    ground_for,
    make_backend,
    sample_pool,
)
from horizon_rl.physics.motors import with_servos
from horizon_rl.robots import REFERENCE, Robot, build_robot, generate, load_preset
from horizon_rl.task import NUM_ACTIONS, Scenarios, TaskCfg, VelocityEnv, draw_scenarios

STEPS = 50
"""Control steps per measurement."""
NUM_BODIES = 16
ROWS_PER_WORLD = 4
POOL_SIZE = 1024


def measure_physics(sizes: Sizes) -> dict[str, float]:
    """Time the backend; on the CPU beside a bare mjbatch loop over the same motion."""
    env, scenarios, actions, figures = _build_wide(sizes)
    backend, pool, num_envs = env.backend, scenarios.pool, sizes.num_envs
    everyone = torch.ones(num_envs, dtype=torch.bool, device=env.device)
    rows = torch.arange(num_envs, device=env.device)
    pose = torch.from_numpy(pool.default_pose[:num_envs]).to(env.device)
    targets = [pose + env.cfg.action_scale * action for action in actions]

    def step_backend(look: Callable[[], object] = lambda: None) -> int:
        backend.reset(everyone, rows)
        for target in targets:
            backend.step(target)
            look()
        finish(env.device)
        return STEPS * num_envs

    works: dict[str, Callable[[], int]] = {"backend": step_backend}
    if isinstance(backend, CpuBackend):
        bounds: list[np.ndarray] = []
        step_backend(lambda: bounds.append(backend.torque_bounds.copy()))
        works["bare"] = _bare_loop(
            backend, scenarios, targets, bounds, sizes.num_threads
        )
    with cores_for_physics(backend):
        costs = median_costs(works, sizes.repeats)
    found = {"steps_per_s": 1.0 / costs["backend"]}
    if "bare" in costs:
        found["bare_steps_per_s"] = 1.0 / costs["bare"]
        found["ratio"] = costs["bare"] / costs["backend"]
    return found | figures


def measure_env(sizes: Sizes) -> dict[str, float]:
    """Time `env.step` with random actions, and the backend's part in it."""
    env, scenarios, actions, figures = _build_wide(sizes)
    clock = Stopwatch(env.backend, "step", env.device)
    physics_s: list[float] = []
    step_env = _env_loop(env, scenarios, actions)

    def step_and_split() -> int:
        clock.lap()
        num_steps = step_env()
        physics_s.append(clock.lap())
        return num_steps

    with cores_for_physics(env.backend):
        cost = median_costs({"env": step_and_split}, sizes.repeats)["env"]
    physics_cost = median(physics_s[1:]) / (STEPS * sizes.num_envs)
    found = {"steps_per_s": 1.0 / cost, "physics_steps_per_s": 1.0 / physics_cost}
    return found | {"ratio": physics_cost / cost} | figures


def compare_envs(sizes: Sizes, beside: Catalogue) -> dict[str, float]:
    """Time `env.step` of two catalogues, in turns.

    On a CPU by the process's own CPU time: what else the machine does does not count.
    """
    both = {"env": sizes, "beside": sizes._replace(catalogue=beside)}
    built = {name: _build_wide(each)[:3] for name, each in both.items()}
    backend = built["env"][0].backend
    on_cpu = backend.device.type == "cpu"
    works = {name: _env_loop(*parts) for name, parts in built.items()}
    with cores_for_physics(backend):
        clock = time.process_time if on_cpu else time.perf_counter
        costs = median_costs(works, sizes.repeats, clock)
    return {
        "steps_per_s": 1.0 / costs["env"],
        "beside_steps_per_s": 1.0 / costs["beside"],
        "cost_share": 1.0 - costs["beside"] / costs["env"],
    }


def _env_loop(
    env: VelocityEnv, scenarios: Scenarios, actions: list[torch.Tensor]
) -> Callable[[], int]:
    def loop() -> int:
        env.begin(scenarios, seed=0)
        for action in actions:
            env.step(action)
        finish(env.device)
        return len(actions) * env.num_envs

    return loop


def build_env(
    robots: Sequence[Robot],
    levels: AtLevels,
    num_rows: int,
    task: TaskCfg,
    sizes: Sizes,
) -> tuple[VelocityEnv, Scenarios]:
    """Build an environment, and scenarios of this many drawn instances to begin it with."""
    num_envs, num_threads, _, device, catalogue = sizes
    rng = np.random.default_rng(0)
    env = VelocityEnv(make_backend(robots[0], num_envs, device, num_threads), task)
    pool = sample_pool(robots, catalogue, levels, num_rows, rng)
    return env, draw_scenarios(pool, task, rng)


def _build_wide(
    sizes: Sizes,
) -> tuple[VelocityEnv, Scenarios, list[torch.Tensor], dict[str, float]]:
    """Build an environment over generated bodies with all groups wide open.

    Returns:
        The environment, its scenarios, an action per control step, drawn in advance
        since drawing is not what is measured, and figures of what building it took.
    """
    num_envs = sizes.num_envs
    before, began = _resident_bytes(), time.perf_counter()
    bodies = [
        load_preset(REFERENCE),
        *generate(np.random.default_rng(0), NUM_BODIES - 1),
    ]
    wide = AtLevels(dict.fromkeys(sizes.catalogue.names, 1.0))
    ground = ground_for(sizes.catalogue.ranges(wide.levels))
    robots = [build_robot(body, ground) for body in bodies]
    num_rows = ROWS_PER_WORLD * num_envs
    env, scenarios = build_env(robots, wide, num_rows, TaskCfg(), sizes)
    env.begin(scenarios, seed=0)
    finish(env.device)
    built, held = time.perf_counter(), _resident_bytes() - before
    sample_pool(robots, sizes.catalogue, wide, POOL_SIZE, np.random.default_rng(0))
    figures = {
        "build_s": built - began,
        f"pool_of_{POOL_SIZE}_s": time.perf_counter() - built,
        "kilobytes_per_world": held / num_envs / 1024,
    }
    generator = torch.Generator().manual_seed(0)
    actions = torch.randn(STEPS, num_envs, NUM_ACTIONS, generator=generator)
    return env, scenarios, list(actions.to(env.device)), figures


def _resident_bytes() -> int:
    """Return the memory this process holds now, or 0 where that cannot be read."""
    pages = Path("/proc/self/statm")
    return 4096 * int(pages.read_text().split()[1]) if pages.exists() else 0


def _bare_loop(
    backend: CpuBackend,
    scenarios: Scenarios,
    targets: list[torch.Tensor],
    bounds: list[np.ndarray],
    num_threads: int,
) -> Callable[[], int]:
    """Return a plain mjbatch loop over the same worlds: the limit.

    It leaves out what the backend adds: bounds that follow the speed in every physics
    step (here they are held for the four of a control step, so that the robots move
    alike and one call does them all) and the task's view of the state.
    """
    pool, n = scenarios.pool, backend.num_worlds
    batch = Batch(with_servos(backend.robot.model), n, num_threads)
    for name, values in pool.fields.items():
        batch.expand(name)[:] = values[:n]
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
