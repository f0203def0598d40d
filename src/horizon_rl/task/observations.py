"""Observations: how robots move, what the deployed actor has of it, and the critic."""

from dataclasses import dataclass

import torch
from tensordict import TensorDict

from horizon_rl.physics import WorldState
from horizon_rl.robots import Ground
from horizon_rl.robots.terrain import Surface
from horizon_rl.task.config import NoiseCfg

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


@dataclass(frozen=True, eq=False)
class Motion:
    """n robots at one moment."""

    linear_velocity: torch.Tensor
    """[n, 3] trunk frame, m/s."""
    angular_velocity: torch.Tensor
    """[n, 3] trunk frame, rad/s."""
    gravity: torch.Tensor
    """[n, 3] unit vector of gravity in the trunk frame."""
    height: torch.Tensor
    """[n] trunk above ground, m."""
    joint_offset: torch.Tensor
    """[n, 12] joint angle minus default pose, rad."""
    joint_velocity: torch.Tensor
    """[n, 12] rad/s."""


def observe_motion(
    state: WorldState,
    default_pose: torch.Tensor,
    ground: Ground | Surface,
    patch: torch.Tensor | int = 0,
) -> Motion:
    """Turn a world's state into the trunk's frame and the default pose's terms."""
    return Motion(
        linear_velocity=rotate_inverse(state.root_quat, state.linear_velocity),
        angular_velocity=state.angular_velocity,
        gravity=gravity_in_frame(state.root_quat),
        height=ground.above(state.root_position, patch),
        joint_offset=state.joint_position - default_pose,
        joint_velocity=state.joint_velocity,
    )


def rotate_inverse(quat: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    """Rotate world vectors [n, 3] into the frames of the quaternions [n, 4]."""
    w, axis = quat[:, :1], quat[:, 1:]
    cross = torch.linalg.cross(axis, vector)
    return vector - 2.0 * (w * cross - torch.linalg.cross(axis, cross))


def gravity_in_frame(quat: torch.Tensor) -> torch.Tensor:
    """Return the direction of gravity in the frames of the quaternions, [n, 3]."""
    w, x, y, z = quat.unbind(dim=1)
    return torch.stack(
        (2.0 * (w * y - x * z), -2.0 * (w * x + y * z), 2.0 * (x * x + y * y) - 1.0),
        dim=1,
    )


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
) -> TensorDict:
    """Compose the observation groups for n worlds, without noise.

    `critic` [n, 53] adds linear velocity, foot contacts and height to the numbers of
    `actor` [n, 45]; `privileged` is the instance: its body and its parameters on a fixed
    scale, which must stay out of any empirical normaliser.
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
    groups = {"actor": clean, "critic": critic, "privileged": privileged}
    return TensorDict(groups, batch_size=[len(clean)])
