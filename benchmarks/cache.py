"""What the transformer's cache of keys and values saves when it acts, on any machine.

python benchmarks/cache.py [WORLDS] [DEVICE]
"""

import sys

import torch
from tensordict import TensorDict

from horizon_rl.bench.stopwatch import finish
from horizon_rl.bench.timing import median_costs
from horizon_rl.learning.attention import rotate, visible
from horizon_rl.learning.config import TransformerCfg
from horizon_rl.learning.transformer import TransformerActor
from horizon_rl.policies.learned import LearnedPolicy
from horizon_rl.task import NUM_ACTIONS, NUM_ACTOR


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


if __name__ == "__main__":
    worlds, device = (sys.argv[1:] + ["256", "cpu"][len(sys.argv) - 1 :])[:2]
    for name, figure in inference_costs(TransformerCfg(), int(worlds), device).items():
        print(f"{name}: {figure:.3g}")
