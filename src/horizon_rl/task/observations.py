"""Observations: what the deployed actor has, and what only the critic may know."""

import torch
from tensordict import TensorDict

from horizon_rl.task.config import NoiseCfg
from horizon_rl.task.motion import Motion

ACTOR_LAYOUT = (
    ("angular_velocity", 3),
    ("gravity", 3),
    ("command", 3),
    ("joint_offset", 12),
    ("joint_velocity", 12),
    ("last_action", 12),
)
"""The actor's 45 numbers in order: nothing that a robot lacks."""

NUM_ACTOR = sum(width for _, width in ACTOR_LAYOUT)


def noise_scale(cfg: NoiseCfg, device: torch.device) -> torch.Tensor:
    """Return the noise of each of the actor's numbers, [45]; commands have none."""
    scales = {
        "angular_velocity": cfg.angular_velocity,
        "gravity": cfg.gravity,
        "joint_offset": cfg.joint_position,
        "joint_velocity": cfg.joint_velocity,
    }
    values = [
        scales.get(name, 0.0) for name, width in ACTOR_LAYOUT for _ in range(width)
    ]
    return torch.tensor(values, device=device)


def observe(
    motion: Motion,
    command: torch.Tensor,
    last_action: torch.Tensor,
    touching: torch.Tensor,
    privileged: torch.Tensor,
    noise: torch.Tensor,
) -> TensorDict:
    """Compose the observation groups for n worlds.

    `actor` [n, 45] is noisy; `critic` [n, 53] adds linear velocity, foot contacts and
    height to the same numbers without noise; `privileged` is the instance: its body and
    its parameters on a fixed scale, which must stay out of any empirical normaliser.
    """
    clean = torch.cat(
        (
            motion.angular_velocity,
            motion.gravity,
            command,
            motion.joint_offset,
            motion.joint_velocity,
            last_action,
        ),
        dim=1,
    )
    critic = torch.cat(
        (clean, motion.linear_velocity, touching, motion.height.unsqueeze(1)), dim=1
    )
    groups = {"actor": clean + noise, "critic": critic, "privileged": privileged}
    return TensorDict(groups, batch_size=[len(clean)])
