"""Lay the ground: which patch each row of a pool stands on, and where on it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from horizon_rl.domains import Range
from horizon_rl.physics.draft import PoolDraft
from horizon_rl.robots.ground import FLAT, Ground
from horizon_rl.robots.terrain import KINDS, TERRAIN, Terrain
from horizon_rl.support.errors import InputError

TERRAIN_GROUP = "terrain"
SIZES = tuple(f"{TERRAIN_GROUP}.{kind.name}" for kind in KINDS)
"""Parameters that say how rough each kind of ground is; 0 is flat."""
CHOICE = f"{TERRAIN_GROUP}.choice"
"""Parameter that chooses among the kinds that are not flat."""

FOOTHOLD_M = 0.05
"""Around a geom's middle, at most, the ground is to be clear of it at the start."""


def ground_for(asked: Mapping[str, Any]) -> Ground:
    """Return the ground that robots need where parameters have these values or ranges.

    Flat, which costs nothing, unless one of them may be rough.

    Args:
        asked: By full name a number, a `Range`, or several of either.
    """
    sizes = [size for name in SIZES for size in np.ravel(asked.get(name, 0.0)).tolist()]
    rough = any(size not in (0.0, Range(0.0, 0.0)) for size in sizes)
    return TERRAIN if rough else FLAT


def lay_ground(draft: PoolDraft) -> dict[str, np.ndarray]:
    """Give each row its patch and its place there.

    Returns:
        What acts in the place of what was drawn, by parameter: [n] the size of the one
        kind that a row has, as rounded, and 0 of all others. The critic is told these.
    """
    asked = {kind.name: draft.terrain.get(kind.name) for kind in KINDS}
    if all(sizes is None for sizes in asked.values()):
        return {}
    n, ground = len(draft.patch), draft.robot.ground
    sizes = {k: np.zeros(n) if v is None else v for k, v in asked.items()}
    if not isinstance(ground, Terrain):
        for name, values in sizes.items():
            if values.any():
                raise InputError(
                    f"{TERRAIN_GROUP}.{name} = {values[values != 0.0][0]:g} needs robots "
                    "that are built on rough ground: build_robot(body, TERRAIN)"
                )
        return {}
    choice = draft.terrain.get("choice", np.zeros(n))
    draft.patch, place, remaining = ground.choose(sizes, choice)
    draft.start_xy = draft.start_xy + place
    floor = draft.robot.model.geom("floor").id
    draft.fields["geom_dataid"][:, floor] = draft.patch
    told = {f"{TERRAIN_GROUP}.{name}": values for name, values in remaining.items()}
    return {name: told[name] for name in told if asked[name.split(".")[1]] is not None}


def clearance(draft: PoolDraft, position: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return how high geoms' middles are above the ground around them, [n].

    Around, since a foot that begins beside a stair must not begin inside it.

    Args:
        draft: Says on which ground.
        position: [n, 3] of the geoms' middles.
        size: [n, 3] of the geoms.
    """
    ground = draft.robot.ground
    if ground.is_plane:
        return ground.above(position, draft.patch)
    reach = np.minimum(size[:, 0], FOOTHOLD_M)[:, None]
    corners = np.array([(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)])
    places = [position[:, :2] + reach * corner for corner in corners]
    heights = [ground.height_at(place, draft.patch) for place in places]
    return position[:, 2] - np.max(heights, axis=0)
