"""What the whole training loop costs, and where it goes."""

import dataclasses
import time
from statistics import median

import torch
from tensordict import TensorDict

from horizon_rl.bench.simulation import NUM_BODIES, measure_env
from horizon_rl.bench.stopwatch import Stopwatch, count_waits, finish
from horizon_rl.bench.timing import Sizes, median_costs
from horizon_rl.domains import AtLevels
from horizon_rl.learning.attention import rotate, visible
from horizon_rl.learning.config import TransformerCfg
from horizon_rl.learning.transformer import TransformerActor
from horizon_rl.policies.learned import LearnedPolicy
from horizon_rl.support.graphs import WARM_UPS
from horizon_rl.task import NUM_ACTIONS, NUM_ACTOR
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
    if isinstance(cfg.learner.actor, TransformerCfg):
        figures |= inference_costs(cfg.learner.actor, num_envs, str(on))
    return figures


@torch.inference_mode()
def inference_costs(
    cfg: TransformerCfg, num_envs: int, on: str = "cpu", repeats: int = 5
) -> dict[str, float]:
    """Return the seconds in which all environments act once, the window being full.

    `cached_step_s` is a step with the cache, one rebuild per window included;
    `recomputed_step_s` runs the whole window through the decoder, as one would without.
    """
    device = torch.device(on)
    obs = TensorDict({"actor": torch.randn(num_envs, NUM_ACTOR)}, [num_envs])
    actor = TransformerActor(obs, NUM_ACTIONS, cfg).to(device)
    obs, policy = obs.to(device), LearnedPolicy(actor)
    num_slots = cfg.reach + 1
    raw = torch.randn(num_envs, num_slots, NUM_ACTOR, device=device)
    slots, rotation = actor.slots[:num_slots], actor.rotation[:, :num_slots]
    mask = visible(slots, slots, torch.zeros_like(slots).unsqueeze(0), cfg.window)

    def act_cached() -> int:
        for _ in range(cfg.window):
            policy.act(obs)
        finish(device)
        return cfg.window

    def act_recomputed() -> int:
        tokens = actor.embed(raw)
        latents = actor.decoder(
            tokens, rotation, mask, lambda _, k, v: (rotate(k, rotation), v)
        )
        actor.mlp(latents[:, -1])
        finish(device)
        return 1

    for _ in range(cfg.num_layers):
        act_cached()
    works = {"cached": act_cached, "recomputed": act_recomputed}
    costs = median_costs(works, repeats)
    return {
        "cached_step_s": costs["cached"],
        "recomputed_step_s": costs["recomputed"],
        "cached_over_recomputed": costs["cached"] / costs["recomputed"],
    }
