"""The default pose of an imported robot: as given, from a keyframe, or found."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from horizon_rl.robots.morphology import JOINT_NAMES
from horizon_rl.robots.standing import TURN, find_pose, turns_into, why_no_stance
from horizon_rl.support.errors import InputError, require


@dataclass(frozen=True, eq=False)
class Joints:
    """The twelve joints as the file has them, in canonical order."""

    ids: np.ndarray
    sign: np.ndarray
    offset_rad: np.ndarray
    """canonical angle = sign * qpos + offset."""
    low: np.ndarray
    high: np.ndarray
    """Canonical ranges, rad; infinite where there is no limit."""

    def counted_around(self, pose: np.ndarray) -> "Joints":
        """Return the joints with angles counted so that `pose` lies in their ranges.

        A file may count a leg's angles from a whole turn away.
        """
        fits = pose.shape == (12,)
        turns = turns_into(pose, self.low, self.high) if fits else np.array(np.nan)
        if np.isnan(turns).any():
            accepted = zip(JOINT_NAMES, self.low, self.high, strict=True)
            raise InputError(
                f"the default pose {pose.round(3).tolist()} is not 12 angles in the "
                f"joints' ranges: "
                f"{', '.join(f'{j} {a:.3f}..{b:.3f}' for j, a, b in accepted)}"
            )
        away = TURN * turns
        return replace(
            self,
            offset_rad=self.offset_rad - away,
            low=self.low - away,
            high=self.high - away,
        )

    def write(self, pose: np.ndarray, model: mujoco.MjModel) -> np.ndarray:
        """Return a configuration of the model in this pose."""
        qpos = np.zeros(model.nq)
        qpos[model.jnt_qposadr[self.ids]] = self.sign * (pose - self.offset_rad)
        return qpos


def choose_pose(
    source: mujoco.MjModel,
    joints: Joints,
    model: mujoco.MjModel,
    feet: list[int],
    lengths_m: Sequence[float],
    given: Sequence[float] | np.ndarray | None,
) -> tuple[np.ndarray, Joints, str]:
    """Choose the canonical default pose: as given, from a keyframe, or found.

    Args:
        source: The robot as the file has it, with its keyframes.
        joints: Of both models.
        model: The robot as it is simulated, with geoms `feet`.
        feet: In which it stands.
        lengths_m: Of a thigh and of a calf.
        given: The pose that a user asks for.

    Returns:
        It, the joints with angles counted around it, and in words where it is from.
    """

    def why_not(pose: np.ndarray, joints: Joints) -> str | None:
        qpos = joints.write(pose, model)
        return why_no_stance(model, qpos, feet, joints.ids, thigh_m + calf_m)

    thigh_m, calf_m = lengths_m
    for name, length_m in (("thigh", thigh_m), ("calf", calf_m)):
        require(f"the length of a {name}", length_m, 0.001, 100.0)
    if given is not None:
        pose = np.asarray(given, dtype=float)
        joints = joints.counted_around(pose)
        if reason := why_not(pose, joints):
            raise InputError(f"the given default pose is none to stand in: {reason}")
        return pose, joints, "given"
    refused = ""
    for name, pose in _keyframe_poses(source, joints):
        try:
            counted = joints.counted_around(pose)
        except InputError:
            reason = "it lies outside the joints' ranges"
        else:
            reason = why_not(pose, counted)
            if not reason:
                return pose, counted, f"keyframe {name}"
        refused = refused or f"; not keyframe {name}: {reason}"
    pose = find_pose(thigh_m, calf_m, joints.low, joints.high)
    joints = joints.counted_around(pose)
    if reason := why_not(pose, joints):
        raise InputError(f"no pose to stand in: {reason}{refused}")
    return pose, joints, f"found by kinematics{refused}"


def _keyframe_poses(
    model: mujoco.MjModel, joints: Joints
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield canonical poses of the keyframes, 'stand' and 'home' first, by name."""
    names = [model.key(i).name for i in range(model.nkey)]
    for key in sorted(
        range(model.nkey), key=lambda i: (names[i] != "stand", names[i] != "home", i)
    ):
        angles = model.key_qpos[key][model.jnt_qposadr[joints.ids]]
        pose = joints.sign * angles + joints.offset_rad
        far = np.abs(pose) > math.pi
        pose[far] = np.remainder(pose[far] + math.pi, TURN) - math.pi
        yield f"'{names[key]}'" if names[key] else str(key), pose
