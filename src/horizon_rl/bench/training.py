"""What the whole training loop costs, and where it goes."""

import dataclasses
from statistics import median

from horizon_rl.bench.simulation import measure_env
from horizon_rl.bench.timing import Stopwatch
from horizon_rl.domains import paper_catalogue
from horizon_rl.learning import inference_costs
from horizon_rl.learning.config import TransformerCfg
from horizon_rl.training import PolicyKind, TrainCfg, Trainer, preset_cfg


def measure_training(
    preset: str, policy: PolicyKind, num_envs: int, num_threads: int, repeats: int
) -> dict[str, float]:
    """Time iterations of a preset on generated bodies, all seven groups wide open."""
    cfg = dataclasses.replace(
        preset_cfg(preset, policy),
        num_envs=num_envs,
        robot="generated",
        num_bodies=16,
        levels="all=1",
        segment_iterations=repeats + 1,
    )
    trainer = Trainer(cfg, paper_catalogue(), num_threads)
    physics = Stopwatch.around(trainer.env.backend, "step")
    inference = Stopwatch.around(trainer.learner, "act")
    iterations = []
    for iteration in trainer.run_segment():
        iterations.append(
            (iteration.collect_s, iteration.learn_s, physics.lap(), inference.lap())
        )
    collect, learn, physics_s, inference_s = (
        median(column) for column in list(zip(*iterations[1:], strict=True))
    )
    steps = cfg.steps_per_iteration
    alone = measure_env(num_envs, num_threads, repeats)["steps_per_s"]
    return {
        "steps_per_s": steps / (collect + learn),
        "collecting_share": collect / (collect + learn),
        "physics_share": physics_s / (collect + learn),
        "inference_share": inference_s / (collect + learn),
        "update_share": learn / (collect + learn),
        "env_steps_per_s": alone,
        "ratio": steps / (collect + learn) / alone,
        **_cache_figures(cfg, num_envs),
    }


def _cache_figures(cfg: TrainCfg, num_envs: int) -> dict[str, float]:
    """Compare cached inference with recomputing the window, for a transformer."""
    actor = cfg.learner.actor
    if not isinstance(actor, TransformerCfg):
        return {}
    costs = inference_costs(actor, num_envs)
    return {
        "cached_step_s": costs["cached_s"],
        "recomputed_step_s": costs["recomputed_s"],
        "cached_over_recomputed": costs["cached_s"] / costs["recomputed_s"],
    }
