"""Damage: legs of uneven length and weight, joints that stick or are weak.

All of it changes numbers of a compiled body, never its structure: a damaged robot shares a
batch with sound ones. The robot is not told: default pose and motors' gains stay.
"""

from collections.abc import Iterator

import numpy as np

from horizon_rl.physics.draft import PoolDraft
from horizon_rl.physics.stilts import lengthen_calves
from horizon_rl.robots import JOINT_NAMES, Robot
from horizon_rl.robots.build import LOCK_HALF_WIDTH_RAD

KNEES = ("FL_calf", "FR_calf"), ("RL_calf", "RR_calf")
FAULTS = np.array(
    [
        [name in faulty for name in JOINT_NAMES]
        # Each joint alone, and both knees of one end as often as two joints are: what
        # the paper did to its robot is met in training as often as any other damage.
        for faulty in (*((name,) for name in JOINT_NAMES), *KNEES, *KNEES)
    ]
)
"""[faults, 12] joints that fail together."""


def scale_legs(draft: PoolDraft, factor: np.ndarray) -> None:
    """Scale mass and inertia of all links of each leg, [n, 4]."""
    for leg, links in enumerate(_links_of_legs(draft.robot)):
        draft.fields["body_mass"][:, links] *= factor[:, leg, None]
        draft.fields["body_inertia"][:, links] *= factor[:, leg, None, None]


def add_stilts(draft: PoolDraft, length: np.ndarray) -> None:
    """Lengthen the calves of front and hind legs, [n, 2], m."""
    lengthen_calves(draft, np.repeat(length, 2, axis=1))


def choose_faulty_joints(draft: PoolDraft, unit: np.ndarray) -> None:
    """Choose which joints fail, by numbers in [0, 1]; they stick at their default."""
    fault = np.minimum((unit * len(FAULTS)).astype(int), len(FAULTS) - 1)
    draft.stuck_at = np.where(FAULTS[fault], draft.body_pose, np.nan)


def scale_stuck_angles(draft: PoolDraft, factor: np.ndarray) -> None:
    """Let faulty joints stick at `factor` [n] times their default angle."""
    draft.stuck_at = draft.stuck_at * factor[:, None]


def lose_travel(draft: PoolDraft, share: np.ndarray) -> None:
    """Take a share [n] of their travel from faulty joints; from 1 on they are locked.

    What is left closes in on the angle that the joint sticks at. A joint that has no
    limits in the model keeps its travel.
    """
    robot = draft.robot
    low, high = draft.joint_ranges()
    lost = np.minimum(share, 1.0)[:, None]
    stuck = ~np.isnan(draft.stuck_at) & (lost > 0.0) & np.isfinite(low)
    angle = np.clip(np.where(stuck, draft.stuck_at, 0.0), low, high)
    # Elsewhere no share is lost of a range that may be endless.
    low, high = (np.where(stuck, end, 0.0) for end in (low, high))
    low = low + lost * (angle - LOCK_HALF_WIDTH_RAD - low)
    high = high + lost * (angle + LOCK_HALF_WIDTH_RAD - high)
    ends = [robot.source_position(end) for end in (low, high)]
    limits = draft.fields["jnt_range"]
    joints = robot.model.dof_jntid[robot.dof_adr]
    limits[:, joints] = np.where(
        stuck[..., None], np.sort(np.stack(ends, axis=-1)), limits[:, joints]
    )
    clipped = np.clip(draft.start_position, low, high)
    draft.start_position = np.where(stuck, clipped, draft.start_position)
    draft.reshaped |= stuck.any(axis=1)


def lose_strength(draft: PoolDraft, share: np.ndarray) -> None:
    """Take a share [n] of their torque from faulty joints."""
    faulty = ~np.isnan(draft.stuck_at)
    draft.effort = draft.effort * np.where(faulty, 1.0 - share[:, None], 1.0)


def _links_of_legs(robot: Robot) -> Iterator[np.ndarray]:
    """Return the bodies of each leg, from the hip outward."""
    model = robot.model
    hips = model.jnt_bodyid[model.dof_jntid[robot.dof_adr[::3]]]
    leg_of = np.full(model.nbody, -1)
    for body in range(1, model.nbody):  # Parents come first.
        hip = np.flatnonzero(hips == body)
        leg_of[body] = hip[0] if len(hip) else leg_of[model.body_parentid[body]]
    return (np.flatnonzero(leg_of == leg) for leg in range(4))
