"""What the whole training loop costs, and where it goes."""

import dataclasses
import time
from statistics import median

from horizon_rl.bench.inference import inference_costs
from horizon_rl.bench.simulation import measure_env
from horizon_rl.bench.stopwatch import Stopwatch, count_waits, finish
from horizon_rl.domains import AtLevels, paper_catalogue
from horizon_rl.learning.config import TransformerCfg
from horizon_rl.support.graphs import WARM_UPS
from horizon_rl.training.config import TrainCfg
from horizon_rl.training.learner import TorchLearner
from horizon_rl.training.presets import PolicyKind, preset_cfg
from horizon_rl.training.worlds import SimulatedWorlds


def measure_training(
    preset: str,
    policy: PolicyKind,
    num_envs: int,
    num_threads: int,
    repeats: int,
    device: str = "cpu",
) -> dict[str, float]:
    """Time iterations of a preset on generated bodies, all seven groups wide open."""
    cfg = dataclasses.replace(
        preset_cfg(preset, policy),
        num_envs=num_envs,
        robot="generated",
        num_bodies=16,
        levels="all=1",
        phase_iterations=1 << 30,
    )
    began = time.perf_counter()
    catalogue = paper_catalogue()
    worlds = SimulatedWorlds(cfg, catalogue, device, num_threads=num_threads)
    learner, on = TorchLearner(worlds, catalogue), worlds.env.device
    physics = Stopwatch.around(worlds.env.backend, "step", on)
    inference = Stopwatch.around(learner.algorithm, "act", on)
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
        iteration = learner.iterate(worlds)
        parts = physics.lap(), inference.lap()
        laps.append((iteration.collect_s, iteration.learn_s, *parts))
    whole = (time.perf_counter() - began) / repeats
    with count_waits(on) as waits:
        learner.iterate(worlds)
    collect, learn, physics_s, inference_s = (
        median(column) for column in zip(*laps, strict=True)
    )
    steps, total = learner.steps_per_iteration, collect + learn
    alone = measure_env(num_envs, num_threads, repeats, device)["steps_per_s"]
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
    return figures | _cache_figures(cfg, num_envs, str(on))


def _cache_figures(cfg: TrainCfg, num_envs: int, device: str) -> dict[str, float]:
    """Compare cached inference with recomputing the window, for a transformer."""
    network = cfg.learner.actor
    if not isinstance(network, TransformerCfg):
        return {}
    costs = inference_costs(network, num_envs, device=device)
    return {
        "cached_step_s": costs["cached_s"],
        "recomputed_step_s": costs["recomputed_s"],
        "cached_over_recomputed": costs["cached_s"] / costs["recomputed_s"],
    }
