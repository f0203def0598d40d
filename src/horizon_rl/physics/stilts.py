"""Longer calves: a rod below each, and the foot below the rod, as stilts are built."""

from collections.abc import Iterator
from dataclasses import dataclass

import mujoco
import numpy as np

from horizon_rl.physics.draft import PoolDraft
from horizon_rl.robots import LEG_NAMES, Robot
from horizon_rl.robots.build import SHIN_SHARE
from horizon_rl.robots.leg import STILT_RADIUS_M


@dataclass(frozen=True, eq=False)
class Shank:
    """Knee to foot of one leg, in the template that all bodies of a batch share."""

    body: int
    """The calf, which the knee moves."""
    foot: int
    """Geom."""
    touch_site: int
    """Where the ground's force on the foot is felt."""
    rods: dict[int, float]
    """Geoms of a robot built here that reach from the knee toward the foot, and how far,
    as a share of the way. An imported robot's stay as they are."""
    knee: np.ndarray
    """[3] in the calf's frame."""
    down: np.ndarray
    """[3] unit vector from knee to foot, in the calf's frame."""
    foot_down: np.ndarray
    """[3] the same in the frame of the foot's body."""
    length_m: float


def lengthen_calves(draft: PoolDraft, added: np.ndarray) -> None:
    """Lengthen each leg's calf by a rod that weighs per metre what the calf does.

    Args:
        draft: Its feet move away from their knees.
        added: [n, 4] m, not negative.
    """
    for leg, shank in enumerate(_find_shanks(draft.robot)):
        rows = np.flatnonzero(added[:, leg])
        if len(rows):
            _lengthen(draft, shank, rows, added[rows, leg])
            draft.reshaped[rows] = True


def _find_shanks(robot: Robot) -> Iterator[Shank]:
    model = robot.model
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    geoms = {model.geom(i).name: i for i in range(model.ngeom)}
    sites = dict(zip(model.sensor_adr, model.sensor_objid, strict=True))
    for leg, name in enumerate(LEG_NAMES):
        rods = {f"{name}_shank": 1.0, f"{name}_shin": SHIN_SHARE}
        joint = int(model.dof_jntid[robot.dof_adr[3 * leg + 2]])
        body, foot = int(model.jnt_bodyid[joint]), int(robot.foot_geom_ids[leg])
        reach = data.geom_xpos[foot] - data.xanchor[joint]
        length = float(np.linalg.norm(reach))
        frames = data.xmat[[body, model.geom_bodyid[foot]]].reshape(2, 3, 3)
        down, foot_down = np.einsum("fij,i->fj", frames, reach / length)
        yield Shank(
            body=body,
            foot=foot,
            touch_site=int(sites[robot.foot_sensor_adr[leg]]),
            rods={geoms[n]: share for n, share in rods.items() if n in geoms},
            knee=model.jnt_pos[joint],
            down=down,
            foot_down=foot_down,
            length_m=length,
        )


def _lengthen(
    draft: PoolDraft, shank: Shank, rows: np.ndarray, added: np.ndarray
) -> None:
    """Lengthen one calf of the instances `rows` by `added` m each, both [m]."""
    fields, moved = draft.fields, added[:, None] * shank.foot_down
    # Bodies of one batch differ in how far down the foot is, and in no direction.
    apart = fields["geom_pos"][rows, shank.foot]
    apart = apart - draft.robot.model.geom_pos[shank.foot]
    length = shank.length_m + apart @ shank.foot_down
    _weld_rod(draft, shank, rows, length, added)
    fields["geom_pos"][rows, shank.foot] += moved
    fields["site_pos"][rows, shank.touch_site] += moved
    for rod, share in shank.rods.items():
        half = share * added / 2.0
        fields["geom_pos"][rows, rod] += share * moved / 2.0
        fields["geom_size"][rows, rod, 1] += half
        fields["geom_rbound"][rows, rod] += half
        fields["geom_aabb"][rows, rod, 5] += half


def _weld_rod(
    draft: PoolDraft,
    shank: Shank,
    rows: np.ndarray,
    length: np.ndarray,
    added: np.ndarray,
) -> None:
    """Weld rods to calves of a length: mass, its centre, and inertia about that."""
    fields, calf = draft.fields, (rows, shank.body)
    mass, com = fields["body_mass"][calf], fields["body_ipos"][calf]
    rod_mass = mass * added / length
    total = mass + rod_mass
    middle = shank.knee + (length + added / 2.0)[:, None] * shank.down
    offset, axis = middle - com, np.outer(shank.down, shank.down)
    # Second moments of mass, integrals of r r^T, add up; moments of inertia follow.
    across = STILT_RADIUS_M**2 / 4.0 * (np.eye(3) - axis)
    rod = across + (added**2 / 12.0)[:, None, None] * axis
    between = offset[:, :, None] * offset[:, None, :]
    between *= (mass * rod_mass / total)[:, None, None]
    axes = _rotation(fields["body_iquat"][calf])
    own = fields["body_inertia"][calf]
    spread = own.sum(axis=1, keepdims=True) / 2.0 - own
    moment = np.einsum("nij,nj,nkj->nik", axes, spread, axes)
    moment = moment + rod_mass[:, None, None] * rod + between
    spread, axes = np.linalg.eigh(moment)
    axes[:, :, 0] *= np.linalg.det(axes)[:, None]
    fields["body_mass"][calf] = total
    fields["body_ipos"][calf] = com + (rod_mass / total)[:, None] * offset
    fields["body_inertia"][calf] = spread.sum(axis=1, keepdims=True) - spread
    fields["body_iquat"][calf] = _quaternion(axes)


def _rotation(quat: np.ndarray) -> np.ndarray:
    """Turn unit quaternions w x y z [n, 4] into matrices [n, 3, 3]."""
    w, x, y, z = quat.T
    cross = np.zeros((len(quat), 3, 3))
    cross[:, 0, 1], cross[:, 0, 2], cross[:, 1, 2] = -z, y, -x
    cross = cross - cross.transpose(0, 2, 1)
    return np.eye(3) + 2.0 * (w[:, None, None] * cross + cross @ cross)


def _quaternion(rotation: np.ndarray) -> np.ndarray:
    """Turn matrices [n, 3, 3] into unit quaternions w x y z [n, 4]."""
    # The eigenvector of the largest eigenvalue of Bar-Itzhack's matrix: no cases.
    m = rotation
    k = np.zeros((len(m), 4, 4))
    k[:, 1:, 1:] = m + m.transpose(0, 2, 1)
    k[:, 0, 1:] = np.stack(
        [m[:, 2, 1] - m[:, 1, 2], m[:, 0, 2] - m[:, 2, 0], m[:, 1, 0] - m[:, 0, 1]], 1
    )
    k[:, 1:, 0] = k[:, 0, 1:]
    trace = np.trace(m, axis1=1, axis2=2)
    k[:, 0, 0] = trace
    k[:, 1:, 1:] -= trace[:, None, None] * np.eye(3)
    return np.linalg.eigh(k)[1][:, :, -1]
