"""How a body stands: height and pitch on its four feet, and how far from tipping."""

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Stance:
    """A trunk at rest on four feet that are fixed to it."""

    height_m: float
    """Ground to trunk origin."""
    pitch_rad: float
    """Rotation about y, positive nose down."""

    @property
    def quat(self) -> tuple[float, float, float, float]:
        """The trunk's orientation as w, x, y, z."""
        return math.cos(self.pitch_rad / 2), 0.0, math.sin(self.pitch_rad / 2), 0.0


def rest_on_feet(centers_m: np.ndarray, radii_m: np.ndarray) -> Stance:
    """Put front and rear feet on the ground: find the plane that touches both.

    Default poses of real robots often fold the rear legs more than the front ones, so
    the trunk is not quite level (Go2: 1.2 degrees) and no height puts all four feet of
    a level trunk on the ground.

    Args:
        centers_m: foot centres in the trunk frame, FL FR RL RR, shape (4, 3).
        radii_m: foot radii in the same order, shape (4,).
    """
    front, rear = centers_m[:2].mean(axis=0), centers_m[2:].mean(axis=0)
    front_radius, rear_radius = radii_m[:2].mean(), radii_m[2:].mean()
    dx, dz = front[0] - rear[0], front[2] - rear[2]
    # The ground's normal n, in the trunk's x-z plane, solves n . (front - rear) =
    # front_radius - rear_radius: both centres lie one radius above the ground.
    normal_angle = math.atan2(dz, dx) + math.acos(
        (front_radius - rear_radius) / math.hypot(dx, dz)
    )
    normal_x, normal_z = math.cos(normal_angle), math.sin(normal_angle)
    height = front_radius - normal_x * front[0] - normal_z * front[2]
    return Stance(height_m=float(height), pitch_rad=-math.atan2(normal_x, normal_z))


def support_margin_m(feet_xy: np.ndarray, com_xy: np.ndarray) -> float:
    """Return how far the centre of mass lies inside the feet; negative is outside.

    Args:
        feet_xy: foot contacts, FL FR RL RR, shape (4, 2).
        com_xy: projected centre of mass, shape (2,).
    """
    corners = feet_xy[[0, 2, 3, 1]]  # Counter-clockwise from above.
    edges = np.roll(corners, -1, axis=0) - corners
    inward = np.stack([-edges[:, 1], edges[:, 0]], axis=1)
    inward /= np.linalg.norm(inward, axis=1, keepdims=True)
    return float(np.min(np.sum(inward * (com_xy - corners), axis=1)))
