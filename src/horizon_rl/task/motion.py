"""Motion: what rewards and observations are computed from, in the trunk's frame."""

from dataclasses import dataclass

import torch

from horizon_rl.physics import WorldState
from horizon_rl.robots import Ground


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
    state: WorldState, default_pose: torch.Tensor, ground: Ground
) -> Motion:
    """Turn a world's state into the trunk's frame and the default pose's terms."""
    return Motion(
        linear_velocity=rotate_inverse(state.root_quat, state.linear_velocity),
        angular_velocity=state.angular_velocity,
        gravity=gravity_in_frame(state.root_quat),
        height=ground.above(state.root_position),
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
