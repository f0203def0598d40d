"""`Morphology`: everything that defines one twelve-joint quadruped, and how it stands."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from horizon_rl.robots.leg import JOINT_KINDS, Leg, Link, Vec3, rotation_y
from horizon_rl.support.errors import InputError, unknown

LEG_NAMES = ("FL", "FR", "RL", "RR")
JOINT_NAMES = tuple(f"{leg}_{kind}" for leg in LEG_NAMES for kind in JOINT_KINDS)
"""The canonical order of joints, motors, observations and actions."""

IRON_KG_M3 = 7870.0


@dataclass(frozen=True, kw_only=True)
class Box:
    """An axis-aligned box in the trunk frame."""

    half_extents_m: Vec3
    center_m: Vec3


@dataclass(frozen=True, kw_only=True)
class Payload:
    """An iron ball that swings below the trunk on a light rigid link."""

    mass_kg: float
    attach_m: Vec3
    """Where the link hangs, in the trunk frame."""
    link_length_m: float = 0.1
    """Attachment to the ball's centre."""

    def __post_init__(self) -> None:
        if not self.mass_kg > 0.0 or not self.radius_m < self.link_length_m:
            raise InputError(
                f"a payload needs a mass above 0 kg, got {self.mass_kg}, and a link "
                f"longer than the ball's radius, got {self.link_length_m} m"
            )

    @property
    def radius_m(self) -> float:
        """Radius of a solid iron ball of this mass."""
        return (3.0 * self.mass_kg / (4.0 * math.pi * IRON_KG_M3)) ** (1.0 / 3.0)


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


@dataclass(frozen=True, kw_only=True)
class Morphology:
    """One body: its facts as built, and what an intervention did to it.

    Triples go hip, thigh, calf. Interventions only touch `locked`, `payloads` and the
    legs' `stilt_m`; all else keeps describing the intact robot, whose motors they leave
    as they were.
    """

    name: str
    """As used on the command line."""
    title: str
    trunk: Link
    """Trunk with everything rigidly fixed to it; its frame is the robot's root."""
    trunk_box: Box
    """What of the trunk can hit the ground."""
    front: Leg
    """Front left leg."""
    rear: Leg
    torque_limit_nm: Vec3
    """The real motors' largest torque."""
    velocity_limit_rad_s: Vec3
    """The real motors' speed at no torque."""
    armature_kg_m2: Vec3
    """Rotor inertia seen at the joint."""
    stiffness_nm_rad: Vec3 | None = None
    """Position gain that the real robot is run with, where known."""
    damping_nm_s_rad: Vec3 | None = None
    """Velocity gain that the real robot is run with, where known."""
    locked: tuple[tuple[str, float], ...] = ()
    """Joints that are held, each with its angle in rad."""
    payloads: tuple[Payload, ...] = ()
    """Balls that swing below the trunk."""
    sources: tuple[str, ...] = ()
    """Where the numbers come from: repository@commit:path (what)."""
    licence: str = ""
    estimated: tuple[str, ...] = ()
    """What no source gives, in words."""

    def __post_init__(self) -> None:
        pair = self.front, self.rear
        left = all(leg.hip_pos_m[1] + leg.thigh_offset_m[1] > 0.0 for leg in pair)
        ahead = self.front.hip_pos_m[0] > self.rear.hip_pos_m[0]
        weakest = min(*self.torque_limit_nm, *self.velocity_limit_rad_s)
        if not (left and ahead and weakest > 0.0):
            raise InputError(
                f"{self.name}: needs left legs (y > 0), front hips before the rear ones, "
                "and limits of torque and velocity above 0"
            )
        for joint, _ in self.locked:
            if joint not in JOINT_NAMES:
                raise InputError(unknown("joint", joint, JOINT_NAMES))

    @cached_property
    def legs(self) -> tuple[Leg, Leg, Leg, Leg]:
        """The four legs, FL FR RL RR."""
        return self.front, self.front.mirrored(), self.rear, self.rear.mirrored()

    @property
    def body_mass_kg(self) -> float:
        """Mass of the intact robot: motor parameters scale with it."""
        pair = (self.front, self.rear)
        links = [link for leg in pair for link in (leg.hip, leg.thigh, leg.calf)]
        return self.trunk.mass_kg + 2.0 * sum(link.mass_kg for link in links)

    @property
    def total_mass_kg(self) -> float:
        """Mass with stilts and payloads: what stands on the feet."""
        legs = sum(link.mass_kg for leg in self.legs for link in leg.links)
        return self.trunk.mass_kg + legs + sum(p.mass_kg for p in self.payloads)

    @property
    def thigh_length_m(self) -> float:
        """Thigh joint to knee, mean of front and rear."""
        return (self.front.thigh_length_m + self.rear.thigh_length_m) / 2.0

    @property
    def calf_length_m(self) -> float:
        """Knee to the foot's centre without stilt, mean of front and rear."""
        return (self.front.calf_length_m + self.rear.calf_length_m) / 2.0

    @property
    def leg_length_m(self) -> float:
        """Thigh and calf of the intact robot, mean of front and rear."""
        return (self.front.length_m + self.rear.length_m) / 2.0

    @property
    def default_pose_rad(self) -> np.ndarray:
        """Angles that actions are offsets from, canonical order, shape (12,)."""
        return np.array([leg.default_pose_rad for leg in self.legs]).ravel()

    @property
    def stand_pose_rad(self) -> np.ndarray:
        """The default pose, but locked joints where they are locked."""
        pose = self.default_pose_rad
        for joint, angle in self.locked:
            pose[JOINT_NAMES.index(joint)] = angle
        return pose

    @cached_property
    def stance(self) -> Stance:
        """Height and pitch of the trunk with all four feet on the ground."""
        radii = np.array([leg.foot_radius_m for leg in self.legs])
        return rest_on_feet(self._feet_m, radii)

    @property
    def standing_height_m(self) -> float:
        """Ground to trunk origin, standing in the default pose."""
        return self.stance.height_m

    @property
    def support_margin_m(self) -> float:
        """How far inside its feet the standing robot's centre of mass lies."""
        level = rotation_y(self.stance.pitch_rad).T
        return support_margin_m((self._feet_m @ level)[:, :2], (self.com_m @ level)[:2])

    @property
    def com_m(self) -> np.ndarray:
        """Centre of mass of the standing robot in the trunk frame."""
        weighted = self.trunk.mass_kg * np.array(self.trunk.com_m)
        for leg, pose in zip(self.legs, self.stand_pose_rad.reshape(4, 3), strict=True):
            frames = leg.frames(pose)[:3]
            for link, (origin, rotation) in zip(leg.links, frames, strict=True):
                weighted += link.mass_kg * (origin + rotation @ link.com_m)
        down = -rotation_y(self.stance.pitch_rad)[2]
        for payload in self.payloads:
            center = np.array(payload.attach_m) + payload.link_length_m * down
            weighted += payload.mass_kg * center
        return weighted / self.total_mass_kg

    @cached_property
    def _feet_m(self) -> np.ndarray:
        poses = self.stand_pose_rad.reshape(4, 3)
        frames = [leg.frames(pose) for leg, pose in zip(self.legs, poses, strict=True)]
        return np.array([foot for *_, (foot, _) in frames])


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
    larger_m, apart_m = front_radius - rear_radius, math.hypot(dx, dz)
    if abs(larger_m) >= apart_m:
        raise InputError(
            f"front feet of radius {front_radius:.3g} m, rear feet of {rear_radius:.3g} m "
            f"and {apart_m:.3g} m apart do not stand on one plane"
        )
    # The ground's normal n, in the trunk's x-z plane, solves n . (front - rear) =
    # front_radius - rear_radius: both centres lie one radius above the ground.
    normal_angle = math.atan2(dz, dx) + math.acos(larger_m / apart_m)
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
