"""Links and legs: rigid bodies and the geometry that chains them.

Convention: x forward, y left, z up. A leg at zero hangs straight down. Joint axes are
hip +x, thigh +y, calf +y on all four legs: a positive hip angle swings a leg to the
left, a positive thigh angle swings the foot back, and a knee that points backward has
a negative calf angle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from horizon_rl.support.errors import InputError

Vec3 = tuple[float, float, float]
Interval = tuple[float, float]

JOINT_KINDS = ("hip", "thigh", "calf")

STILT_RADIUS_M = 0.01

SIX = (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)
"""Rows and columns of a symmetric matrix's xx yy zz xy xz yz."""


def floats(values: Any) -> Any:
    """Turn a vector into a tuple of plain numbers, as the facts are kept."""
    return tuple(map(float, values))


@dataclass(frozen=True, kw_only=True)
class Link:
    """One rigid link; its frame sits at the joint that moves it."""

    mass_kg: float
    com_m: Vec3
    """Centre of mass in the link frame."""
    inertia_kg_m2: tuple[float, float, float, float, float, float]
    """About the centre of mass, along the link frame: xx yy zz xy xz yz."""

    def __post_init__(self) -> None:
        values = self.mass_kg, *self.com_m, *self.inertia_kg_m2
        possible = all(map(math.isfinite, values)) and self.mass_kg > 0.0
        # Positive mass everywhere means a positive second moment, which is the triangle
        # inequality of the principal inertias: MuJoCo refuses anything else.
        if not possible or np.linalg.eigvalsh(self.second_moment_kg_m2)[0] <= 0.0:
            raise InputError(f"no rigid body has this mass and inertia: {self}")

    @property
    def inertia_matrix_kg_m2(self) -> np.ndarray:
        """The inertia as a symmetric 3 x 3 matrix."""
        xx, yy, zz, xy, xz, yz = self.inertia_kg_m2
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    @property
    def second_moment_kg_m2(self) -> np.ndarray:
        """Integral of r r^T over the mass, about its centre."""
        inertia = self.inertia_matrix_kg_m2
        return 0.5 * np.trace(inertia) * np.eye(3) - inertia

    @classmethod
    def from_second_moment(cls, mass_kg: float, com_m: Any, moment: np.ndarray) -> Link:
        """Make the link whose mass is spread with the given second moment."""
        inertia = np.trace(moment) * np.eye(3) - moment
        return cls(
            mass_kg=float(mass_kg),
            com_m=floats(com_m),
            inertia_kg_m2=floats(inertia[SIX]),
        )

    def joined(self, other: Link) -> Link:
        """Weld another link of the same frame to this one."""
        mass = self.mass_kg + other.mass_kg
        apart = np.subtract(other.com_m, self.com_m)
        com = np.add(self.com_m, other.mass_kg / mass * apart)
        between = self.mass_kg * other.mass_kg / mass * np.outer(apart, apart)
        moment = self.second_moment_kg_m2 + other.second_moment_kg_m2 + between
        return Link.from_second_moment(mass, com, moment)

    def mirrored(self, signs: Vec3 = (1.0, -1.0, 1.0)) -> Link:
        """Reflect the link along axes of negative sign; by default, left to right."""
        return replace(
            self,
            com_m=floats(np.multiply(signs, self.com_m)),
            inertia_kg_m2=floats(np.outer(signs, signs)[SIX] * self.inertia_kg_m2),
        )


@dataclass(frozen=True, kw_only=True)
class Leg:
    """Three links and their joints. Presets hold left legs; the right ones mirror."""

    hip_pos_m: Vec3
    """Hip joint in the trunk frame."""
    thigh_offset_m: Vec3
    """Thigh joint in the hip frame."""
    thigh_length_m: float
    calf_length_m: float
    """Knee to the foot's centre, without stilt."""
    foot_radius_m: float
    joint_range_rad: tuple[Interval, Interval, Interval]
    """Lowest and highest angle of hip, thigh and calf."""
    default_pose_rad: Vec3
    """Angles of hip, thigh and calf that actions are offsets from."""
    hip: Link
    thigh: Link
    calf: Link
    """Calf with foot, without stilt."""
    stilt_m: float = 0.0
    """Length added below the calf."""

    def __post_init__(self) -> None:
        lengths = self.thigh_length_m, self.calf_length_m, self.foot_radius_m
        low, high = np.transpose(self.joint_range_rad)
        pose = self.default_pose_rad
        in_range = np.all((low <= pose) & np.less_equal(pose, high))
        if not (min(lengths) > 0.0 and self.stilt_m >= 0.0 and in_range):
            raise InputError(
                "a leg needs thigh, calf and foot radius above 0 m, a stilt not below, "
                f"and default angles in its joints' ranges; got {lengths} and "
                f"{self.stilt_m} m, angles {pose} in {self.joint_range_rad} rad"
            )

    @property
    def length_m(self) -> float:
        """Thigh and calf, without stilt."""
        return self.thigh_length_m + self.calf_length_m

    @property
    def shank_length_m(self) -> float:
        """Knee to the foot's centre, stilt included."""
        return self.calf_length_m + self.stilt_m

    @property
    def shank(self) -> Link:
        """The calf with its stilt: a rod that weighs as much per metre as the calf."""
        if self.stilt_m == 0.0:
            return self.calf
        mass = self.calf.mass_kg * self.stilt_m / self.calf_length_m
        across, along = STILT_RADIUS_M**2 / 4.0, self.stilt_m**2 / 12.0
        middle = (0.0, 0.0, -self.calf_length_m - self.stilt_m / 2.0)
        moment = mass * np.diag([across, across, along])
        return self.calf.joined(Link.from_second_moment(mass, middle, moment))

    @property
    def links(self) -> tuple[Link, Link, Link]:
        """Hip, thigh and shank: what moves with each joint."""
        return self.hip, self.thigh, self.shank

    def mirrored(self) -> Leg:
        """Reflect the leg in the x-z plane."""
        (hip_low, hip_high), *ranges = self.joint_range_rad
        hip_angle, *angles = self.default_pose_rad
        flip_y = (1.0, -1.0, 1.0)
        return replace(
            self,
            hip_pos_m=floats(np.multiply(flip_y, self.hip_pos_m)),
            thigh_offset_m=floats(np.multiply(flip_y, self.thigh_offset_m)),
            joint_range_rad=((-hip_high, -hip_low), *ranges),
            default_pose_rad=(-hip_angle, *angles),
            hip=self.hip.mirrored(),
            thigh=self.thigh.mirrored(),
            calf=self.calf.mirrored(),
        )

    def reversed(self) -> Leg:
        """Bend the knee the other way; the foot stays where it stands below the hip."""
        hip_angle, thigh_angle, calf_angle = self.default_pose_rad
        hip_range, *rest = self.joint_range_rad
        thigh_range, calf_range = ((-high, -low) for low, high in rest)
        # The line from hip to foot lies at this angle from the thigh, to the knee's
        # side of it before and to the other side after.
        lean = math.atan2(
            self.calf_length_m * math.sin(calf_angle),
            self.thigh_length_m + self.calf_length_m * math.cos(calf_angle),
        )
        thigh_angle = min(max(thigh_angle + 2.0 * lean, thigh_range[0]), thigh_range[1])
        return replace(
            self,
            joint_range_rad=(hip_range, thigh_range, calf_range),
            default_pose_rad=(hip_angle, thigh_angle, -calf_angle),
            thigh=self.thigh.mirrored((-1.0, 1.0, 1.0)),
            calf=self.calf.mirrored((-1.0, 1.0, 1.0)),
        )

    def frames(self, pose_rad: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return origin and rotation, in the trunk frame, of hip, thigh, calf, foot."""
        hip_angle, thigh_angle, calf_angle = pose_rad
        hip_rotation = rotation_x(hip_angle)
        thigh_rotation = hip_rotation @ rotation_y(thigh_angle)
        calf_rotation = hip_rotation @ rotation_y(thigh_angle + calf_angle)
        hip = np.array(self.hip_pos_m)
        thigh = hip + hip_rotation @ self.thigh_offset_m
        knee = thigh - self.thigh_length_m * thigh_rotation[:, 2]
        foot = knee - self.shank_length_m * calf_rotation[:, 2]
        return [
            (hip, hip_rotation),
            (thigh, thigh_rotation),
            (knee, calf_rotation),
            (foot, calf_rotation),
        ]


def rotation_x(angle: float) -> np.ndarray:
    """Rotate about x."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def rotation_y(angle: float) -> np.ndarray:
    """Rotate about y: positive pitches the nose down."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
