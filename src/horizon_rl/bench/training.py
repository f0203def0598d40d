"""What the whole training loop costs, and where it goes."""

import dataclasses
import time
from statistics import median

from horizon_rl.bench.simulation import NUM_BODIES, measure_env
from horizon_rl.bench.stopwatch import Stopwatch, count_waits, finish
from horizon_rl.bench.timing import Sizes
from horizon_rl.domains import AtLevels
from horizon_rl.support.graphs import WARM_UPS
from horizon_rl.training.learner import TorchLearner
from horizon_rl.training.presets import PolicyKind, preset_cfg
from horizon_rl.training.worlds import SimulatedWorlds


def measure_training(preset: str, policy: PolicyKind, sizes: Sizes) -> dict[str, float]:
    """Time iterations of a preset on generated bodies, all groups wide open."""
    num_envs, num_threads, repeats, device, catalogue = sizes
    cfg = dataclasses.replace(
        preset_cfg(preset, policy),
        num_envs=num_envs,
        robot="generated",
        num_bodies=NUM_BODIES,
        levels="all=1",
        phase_iterations=1_000_000,
    )
    began = time.perf_counter()
    worlds = SimulatedWorlds(cfg, catalogue, device, num_threads=num_threads)
    learner, on = TorchLearner(worlds, catalogue), worlds.env.device
    physics = Stopwatch(worlds.env.backend, "step", on)
    inference = Stopwatch(learner.algorithm, "act", on)
    worlds.begin(0, AtLevels({}))
    learner.begin(worlds)
    learner.iterate(worlds)
    finish(on)
    start_up_s = time.perf_counter() - began
    # On a GPU, the last of these records what is replayed from then on.
    for _ in range(WARM_UPS if on.type == "cuda" else 0):
        learner.iterate(worlds)
    for watch in (physics, inference):
        watch.lap()
    laps, began = [], time.perf_counter()
    for _ in range(repeats):
        last = learner.iterate(worlds)
        laps.append((last.collect_s, last.learn_s, physics.lap(), inference.lap()))
    whole = (time.perf_counter() - began) / repeats
    with count_waits(on) as waits:
        learner.iterate(worlds)
    collect, learn, physics_s, inference_s = map(median, zip(*laps, strict=True))
    steps, total = learner.steps_per_iteration, collect + learn
    alone = measure_env(sizes)["steps_per_s"]
    figures = {
        "steps_per_s": steps / total,
        "collect_ms": 1e3 * collect,
        "physics_ms": 1e3 * physics_s,
        "inference_ms": 1e3 * inference_s,
        "learn_ms": 1e3 * learn,
        "iteration_ms": 1e3 * whole,
        "start_up_s": start_up_s,
        "collecting_share": collect / total,
        "physics_share": physics_s / total,
        "inference_share": inference_s / total,
        "update_share": learn / total,
        "env_steps_per_s": alone,
        "ratio": steps / total / alone,
    }
    if on.type == "cuda":
        figures["waits_per_iteration"] = float(len(waits))
    return figures
