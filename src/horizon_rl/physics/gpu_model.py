"""The engine's model on the GPU: one row of numbers per world, and room for contacts."""

import warnings
from collections.abc import Iterable, Mapping, Set
from math import prod

import mujoco
import mujoco_warp as mjw
import numpy as np
import torch
import warp as wp

from horizon_rl.physics import gpu_contacts  # noqa: F401  It acts by being imported.
from horizon_rl.physics.pool import Pool

STATE_COLUMNS = ("effort", "velocity_limit", "wrench", "start_qpos", "start_qvel")
"""What a row holds beside the model's fields: attributes of a pool."""

ALIGNMENT = 4
"""Columns start at multiples of 16 bytes: quaternions are read in one go."""

FAR = 1e10
"""The side of a joint limit that is not there, rad."""

_G = mujoco.mjtGeom
CONTACTS_WITH_PLANE = {
    _G.mjGEOM_SPHERE: 1,
    _G.mjGEOM_CAPSULE: 2,
    _G.mjGEOM_ELLIPSOID: 1,
    _G.mjGEOM_CYLINDER: 4,
    _G.mjGEOM_BOX: 4,
    _G.mjGEOM_MESH: 4,
}
"""Most contacts of a geom that lies on the ground. A box sunk in wholly would have 8."""


CONTACTS_WITH_HFIELD = 4
"""Of all that a geom has with the triangles of a height field the deepest is kept, and
three that lie far apart."""


class RowLayout:
    """Where each field of a world lies in its row."""

    def __init__(self, columns: Mapping[str, np.ndarray]):
        """Lay out rows that hold `columns`, [n, ...] each."""
        self._places: dict[str, tuple[int, tuple[int, ...], bool]] = {}
        self._width = 0
        for name, values in columns.items():
            shape = values.shape[1:]
            whole = np.issubdtype(values.dtype, np.integer)
            self._places[name] = self._width, shape, whole
            self._width += -(-prod(shape) // ALIGNMENT) * ALIGNMENT

    def split(self, rows: torch.Tensor) -> dict[str, torch.Tensor]:
        """View the columns of `rows` [n, width] by name, [n, ...] each.

        Whole numbers lie in the rows with their own bits: a row is copied as it is.
        """
        kinds = {True: rows.view(torch.int32), False: rows}
        return {
            name: kinds[whole][:, start : start + prod(shape)].view(len(rows), *shape)
            for name, (start, shape, whole) in self._places.items()
        }

    def pack(self, columns: Mapping[str, np.ndarray]) -> torch.Tensor:
        """Write columns, [n, ...] each, into rows [n, width], float32."""
        rows = torch.zeros((len(columns["start_qpos"]), self._width))
        for name, view in self.split(rows).items():
            view.copy_(torch.from_numpy(columns[name]).reshape(view.shape))
        return rows


def columns_of_pool(pool: Pool) -> dict[str, np.ndarray]:
    """Gather what worlds take from a pool."""
    columns = pool.fields | {name: getattr(pool, name) for name in STATE_COLUMNS}
    ranges = pool.fields["jnt_range"]
    return columns | {"jnt_range": _part_limits(ranges, pool.robot.model)}


def columns_of_model(
    model: mujoco.MjModel, fields: Iterable[str]
) -> dict[str, np.ndarray]:
    """Give the one row of a world that no pool has touched: `fields` as compiled."""
    columns = {name: getattr(model, name)[None] for name in fields}
    columns["jnt_range"] = _part_limits(columns["jnt_range"], model)
    return columns | {
        "effort": np.ones((1, 12)),
        "velocity_limit": np.ones((1, 12)),
        "wrench": np.zeros((1, 6)),
        "start_qpos": model.key("stand").qpos[None],
        "start_qvel": np.zeros((1, model.nv)),
    }


def put_worlds(model: mujoco.MjModel, views: Mapping[str, torch.Tensor]) -> mjw.Model:
    """Upload the model; its fields of each world are `views` into the worlds' rows.

    Views instead of arrays of their own: then a reset is one copy for all fields.
    """
    # What the CPU's engine is told. mujoco_warp has no midphase, and refuses a model that
    # asks for none.
    told = mujoco.mjtDisableBit.mjDSBL_MIDPHASE | mujoco.mjtDisableBit.mjDSBL_ISLAND
    model.opt.disableflags &= ~int(told)
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_AUTO
    with warnings.catch_warnings():
        # Of each prism of a height field a geom has one contact: that is enough.
        warnings.filterwarnings("ignore", "MULTICCD is enabled")
        engine = mjw.put_model(model)
    _part_joints(engine, limited_joints(model))
    for name, view in views.items():
        if name in STATE_COLUMNS:
            continue
        shared = getattr(engine, name)
        inner = getattr(shared.dtype, "_shape_", ())
        # The engine may group a field's numbers otherwise: a box is two vectors.
        counts = (view.shape[1],) if name == "jnt_range" else shared.shape[1:]
        shaped = view.view(len(view), *counts, *inner)
        setattr(engine, name, wp.from_torch(shaped, dtype=shared.dtype))
    # Prints from kernels cost a factor 5; the flags themselves are counted.
    engine.opt.warn_overflow = 0
    return engine


def limited_joints(model: mujoco.MjModel) -> np.ndarray:
    """Ids of the hinges and slides that have limits."""
    kinds = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
    return np.flatnonzero(model.jnt_limited & np.isin(model.jnt_type, kinds))


def most_contacts(engine: mjw.Model) -> int:
    """Return how many contacts one world can have at most."""
    types = engine.geom_type.numpy()
    total = 0
    for pair in engine.nxn_geom_pair_filtered.numpy():
        ground, other = sorted(int(kind) for kind in types[pair])
        if ground == _G.mjGEOM_PLANE:
            total += CONTACTS_WITH_PLANE.get(_G(other), 8)
        else:
            total += CONTACTS_WITH_HFIELD if ground == _G.mjGEOM_HFIELD else 8
    return max(total, 1)


def most_searches(engine: mjw.Model) -> int:
    """Return how many pairs of one kind of geom can near a height field in a world.

    Each has room of its own for the search for its contacts, five kilobytes; those of
    balls and capsules are not searched for.
    """
    types = engine.geom_type.numpy()
    pairs = [
        sorted(types[pair].tolist()) for pair in engine.nxn_geom_pair_filtered.numpy()
    ]
    closed = (_G.mjGEOM_SPHERE, _G.mjGEOM_CAPSULE)
    others = [
        other
        for ground, other in pairs
        if ground == _G.mjGEOM_HFIELD and other not in closed
    ]
    return max(map(others.count, others), default=0)


def most_constraints(
    model: mujoco.MjModel, engine: mjw.Model, contacts: int, fields: Set[str]
) -> int:
    """Return how many rows of constraints one world can have at most.

    Both limits of a joint count: those of a locked one are always active. So does dry
    friction of every joint where it is one of the `fields` in which worlds differ.
    """
    varies = "dof_frictionloss" in fields
    dry = model.nv - 6 if varies else int(np.count_nonzero(model.dof_frictionloss))
    limits = 2 * len(limited_joints(model))
    return contacts * int(engine.nmaxcondim) + limits + dry + 6 * model.neq


def _part_joints(engine: mjw.Model, joints: np.ndarray) -> None:
    """List every limited joint twice, once for each of its limits.

    MuJoCo holds a joint at both limits at once where both are near; mujoco_warp only at
    the nearer. A locked joint lies between two limits at all times: held by one alone it
    gives way. The second entries lie past the engine's count of joints, so that nothing
    but the limits sees them.
    """
    for name in ("jnt_qposadr", "jnt_dofadr"):
        setattr(engine, name, _append(getattr(engine, name), joints, axis=0))
    for name in ("jnt_solref", "jnt_solimp", "jnt_margin"):
        setattr(engine, name, _append(getattr(engine, name), joints, axis=1))
    twice = np.concatenate([joints, engine.njnt + np.arange(len(joints))])
    engine.jnt_limited_slide_hinge_adr = wp.array(twice, dtype=int)


def _append(array: wp.array, entries: np.ndarray, axis: int) -> wp.array:
    values = array.numpy()
    longer = np.concatenate([values, values.take(entries, axis)], axis)
    return wp.array(longer, dtype=array.dtype)


def _part_limits(ranges: np.ndarray, model: mujoco.MjModel) -> np.ndarray:
    """Give the lower limits to the joints and the upper ones to their doubles."""
    joints = limited_joints(model)
    low, high = ranges.copy(), ranges[:, joints].copy()
    low[:, joints, 1] = FAR
    high[:, :, 0] = -FAR
    return np.concatenate([low, high], axis=1)
