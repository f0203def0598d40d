"""`Robot`: a compiled model, and how the canonical joints lie in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import mujoco

    from horizon_rl.robots.ground import Ground
    from horizon_rl.robots.morphology import Morphology

SMALL_BELOW_KG, LARGE_FROM_KG = 18.0, 30.0
"""Of 20,000 generated bodies 35.4 % are small, 30.7 % medium and 33.9 % large."""


def canonical_ranges(
    limits: np.ndarray, limited: np.ndarray, sign: np.ndarray, offset_rad: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and largest canonical angles, (..., 12); infinite: no limit."""
    ends = sign[:, None] * limits + offset_rad[:, None]
    low = np.where(limited, ends.min(axis=-1), -np.inf)
    return low, np.where(limited, ends.max(axis=-1), np.inf)


@dataclass(frozen=True, kw_only=True, eq=False)
class Robot:
    """One quadruped ready to simulate, built here or imported: the same interface.

    Arrays of twelve are in canonical order (`JOINT_NAMES`), arrays of four go FL FR RL
    RR. Motors are torque motors in canonical order, directions included: `ctrl[i]` is
    the torque about canonical joint i. Positions and velocities read from the
    simulation need the sign, positions the offset too.
    """

    name: str
    model: mujoco.MjModel
    """The compiled model; keyframe 'stand' is the standing robot."""
    ground: Ground
    """What it stands on, a part of the model."""
    qpos_adr: np.ndarray
    """Where each canonical joint lies in qpos."""
    dof_adr: np.ndarray
    """Where each canonical joint lies in qvel."""
    joint_sign: np.ndarray
    joint_offset_rad: np.ndarray
    """canonical angle = sign * qpos + offset."""
    trunk_body_id: int
    """Body that the free joint moves."""
    foot_geom_ids: np.ndarray
    foot_sensor_adr: np.ndarray
    """Where the ground's force on each foot lies in sensordata, in N."""
    trunk_sensor_adr: int
    """Where the ground's force on the trunk lies in sensordata, in N."""
    default_pose_rad: np.ndarray
    """Canonical angles that actions are offsets from."""
    pose_source: str = "its facts"
    """Where the default pose is from, in words."""
    left_out: tuple[str, ...] = ()
    """What else moved it in its file and does not here, in words."""
    torque_limit_nm: np.ndarray
    """The real motors' largest torques; not enforced by the model."""
    velocity_limit_rad_s: np.ndarray
    """The real motors' speeds at no torque; not enforced; NaN where unknown."""
    stiffness_nm_rad: np.ndarray
    """The real robot's position gains; NaN where unknown."""
    damping_nm_s_rad: np.ndarray
    """The real robot's velocity gains; NaN where unknown."""
    body_mass_kg: float
    """Mass of the intact robot: parameters scale with it."""
    total_mass_kg: float
    """Mass that stands on the feet, stilts and payloads included."""
    thigh_length_m: float
    """Thigh joint to knee, mean of the four legs."""
    calf_length_m: float
    """Knee to the foot's centre, mean of the four legs, without stilts."""
    standing_height_m: float
    """Ground to trunk origin, standing in the default pose."""

    @property
    def leg_length_m(self) -> float:
        """Thigh and calf of the intact robot: parameters scale with it."""
        return self.thigh_length_m + self.calf_length_m

    def joint_ranges(
        self, jnt_range: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and largest canonical angles, (..., 12); infinite: no limit.

        Args:
            jnt_range: The model's, (..., joints, 2); None: as compiled.
        """
        model, joints = self.model, self.model.dof_jntid[self.dof_adr]
        limits = (model.jnt_range if jnt_range is None else jnt_range)[..., joints, :]
        placed = self.joint_sign, self.joint_offset_rad
        return canonical_ranges(limits, model.jnt_limited[joints], *placed)

    def source_position(self, pose_rad: np.ndarray) -> np.ndarray:
        """Turn canonical angles into the model's own, both (..., 12)."""
        return self.joint_sign * (pose_rad - self.joint_offset_rad)


def size_class(robot: Robot | Morphology) -> str:
    """Name the size class of a robot by the mass of its intact body.

    A payload does not make a body larger. Of the presets Go2 and the five lighter ones
    are small, AlienGo and Laikago medium, Spot, both ANYmals, B1 and B2 large.
    """
    if robot.body_mass_kg < SMALL_BELOW_KG:
        return "small"
    return "medium" if robot.body_mass_kg < LARGE_FROM_KG else "large"
