"""What acting costs with the cache, and without it."""

import time
from collections.abc import Callable
from statistics import median

import torch
from tensordict import TensorDict

from horizon_rl.learning.attention import rotate, visible
from horizon_rl.learning.config import TransformerCfg
from horizon_rl.learning.transformer import TransformerActor
from horizon_rl.policies.learned import LearnedPolicy


@torch.inference_mode()
def inference_costs(
    cfg: TransformerCfg,
    num_envs: int = 64,
    num_inputs: int = 45,
    num_actions: int = 12,
    repeats: int = 5,
    device: str = "cpu",
) -> dict[str, float]:
    """Return the seconds in which all environments act once, the window being full.

    `cached_s` is a step with the cache, one rebuild per window included; `recomputed_s`
    runs the whole window through the decoder, as one would without a cache. They are
    medians of measurements that take turns.
    """
    obs = TensorDict({"actor": torch.randn(num_envs, num_inputs)}, [num_envs])
    actor = TransformerActor(obs, num_actions, cfg).to(device)
    obs, policy = obs.to(device), LearnedPolicy(actor)
    num_slots = cfg.reach + 1
    raw = torch.randn(num_envs, num_slots, num_inputs, device=device)
    slots, rotation = actor.slots[:num_slots], actor.rotation[:, :num_slots]
    mask = visible(slots, slots, torch.zeros_like(slots).unsqueeze(0), cfg.window)

    def act_cached() -> None:
        for _ in range(cfg.window):
            policy.act(obs)

    def act_recomputed() -> None:
        tokens = actor.embed(raw)
        latents = actor.decoder(
            tokens, rotation, mask, lambda _, k, v: (rotate(k, rotation), v)
        )
        actor.mlp(latents[:, -1])

    for _ in range(cfg.num_layers + 1):
        act_cached()
    act_recomputed()
    cached, recomputed = [], []
    for _ in range(repeats):
        cached.append(_seconds(act_cached, device) / cfg.window)
        recomputed.append(_seconds(act_recomputed, device))
    return {"cached_s": median(cached), "recomputed_s": median(recomputed)}


def _seconds(work: Callable[[], None], device: str) -> float:
    began = time.perf_counter()
    work()
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began
