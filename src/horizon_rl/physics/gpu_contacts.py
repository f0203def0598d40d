"""Contacts of balls and capsules with height fields, in closed form.

mujoco_warp 3.14 takes a height field for a set of prisms and searches for the contact
with each by GJK. Its rule for the sides of prisms makes 2 to 6 % of a foot's contacts on
rough ground up to 0.14 m too deep, which kicks robots into the air. Ground has no sides:
what a ball or capsule touches is a triangle of the surface, and the nearest points of a
segment and a triangle need no search. Importing this module lets mujoco_warp ask it for
these pairs.
"""
# Kernels are Python in form only: Warp compiles them, checkers cannot follow.
# pyright: reportArgumentType=false, reportPrivateUsage=false, reportIndexIssue=false
# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportReturnType=false, reportInvalidTypeForm=false
# pyright: reportFunctionMemberAccess=false

from inspect import signature
from typing import Any

import warp as wp
from mujoco_warp._src import collision_driver, collision_gjk
from mujoco_warp._src.collision_core import Geom, contact_params, write_contact
from mujoco_warp._src.collision_gjk import FLOAT_MAX, GJKResult, gjk_phase
from mujoco_warp._src.math import make_frame
from mujoco_warp._src.types import GeomType, OverflowType, vec5

from horizon_rl.physics.gpu_triangles import touch_triangle

wp.set_module_options({"enable_backward": False})

HFIELD, BALL, CAPSULE = (
    wp.constant(int(kind))
    for kind in (GeomType.HFIELD, GeomType.SPHERE, GeomType.CAPSULE)
)
MAX_TOUCHED = wp.constant(24)
"""Triangles that one geom may touch; with more, at least the deepest is kept."""
TOO_MANY = wp.constant(int(OverflowType.HFIELD))
MAX_KEPT = wp.constant(4)
"""Contacts of one geom that reach the solver."""
APART_M = wp.constant(1e-3)
"""Contacts nearer to each other than this are one."""
Depths = wp.types.vector(length=MAX_TOUCHED, dtype=float)
Points = wp.types.matrix(shape=(MAX_TOUCHED, 3), dtype=float)


@wp.func
def search(
    tolerance: float,
    cutoff: float,
    iterations: int,
    geom1: Geom,
    geom2: Geom,
    kind1: int,
    kind2: int,
    centre1: wp.vec3,
    centre2: wp.vec3,
) -> tuple[bool, float, int, wp.vec3, wp.vec3, GJKResult, Geom, Geom]:
    """Search as mujoco_warp does for all other pairs; what is far apart has no contact.

    Its own search says that there is one, at the origin. So a trunk above rough ground
    had more than the 50 (MJ_MAXCONPAIR) that there is room for, and kept the wrong ones.
    """
    overlaps, distance, count, point1, point2, result, shape1, shape2 = gjk_phase(
        tolerance, cutoff, iterations, geom1, geom2, kind1, kind2, centre1, centre2
    )
    if distance == FLOAT_MAX:
        count = 0
    return overlaps, distance, count, point1, point2, result, shape1, shape2


@wp.func
def furthest(positions: Points, chosen: wp.vec4i, kept: int, count: int) -> int:
    """Return which position lies furthest from the chosen ones, or -1: none far enough."""
    best, most = int(-1), float(APART_M)
    for i in range(count):
        nearest = float(1e9)
        for k in range(kept):
            nearest = wp.min(nearest, wp.length(positions[i] - positions[chosen[k]]))
        if nearest > most:
            best, most = i, nearest
    return best


@wp.kernel
def touch_ground(
    # What the model holds.
    geom_type: wp.array[int],
    geom_dataid: wp.array2d[int],
    geom_size: wp.array2d[wp.vec3],
    hfield_size: wp.array[wp.vec4],
    hfield_nrow: wp.array[int],
    hfield_ncol: wp.array[int],
    hfield_adr: wp.array[int],
    hfield_data: wp.array[float],
    geom_condim: wp.array[int],
    geom_priority: wp.array[int],
    geom_solmix: wp.array2d[float],
    geom_solref: wp.array2d[wp.vec2],
    geom_solimp: wp.array2d[vec5],
    geom_friction: wp.array2d[wp.vec3],
    geom_margin: wp.array2d[float],
    geom_gap: wp.array2d[float],
    geom_adhesion: wp.array2d[float],
    pair_dim: wp.array[int],
    pair_solref: wp.array2d[wp.vec2],
    pair_solreffriction: wp.array2d[wp.vec2],
    pair_solimp: wp.array2d[vec5],
    pair_margin: wp.array2d[float],
    pair_gap: wp.array2d[float],
    pair_adhesion: wp.array2d[float],
    pair_friction: wp.array2d[vec5],
    # Where everything is, and which pairs are near each other.
    geom_xpos: wp.array2d[wp.vec3],
    geom_xmat: wp.array2d[wp.mat33],
    room: int,
    num_pairs: wp.array[int],
    pairs: wp.array[wp.vec2i],
    pair_ids: wp.array[wp.vec2i],
    pair_worlds: wp.array[int],
    # The contacts.
    contact_dist: wp.array[float],
    contact_pos: wp.array[wp.vec3],
    contact_frame: wp.array[wp.mat33],
    contact_includemargin: wp.array[float],
    contact_friction: wp.array[vec5],
    contact_solref: wp.array[wp.vec2],
    contact_solreffriction: wp.array[wp.vec2],
    contact_solimp: wp.array[vec5],
    contact_dim: wp.array[int],
    contact_geom: wp.array[wp.vec2i],
    contact_efc_address: wp.array2d[int],
    contact_worldid: wp.array[int],
    contact_type: wp.array[int],
    contact_geomcollisionid: wp.array[int],
    contact_adhesion: wp.array[float],
    num_contacts: wp.array[int],
    overflow: wp.array[int],
):
    """Write the contacts of one ball or capsule: the deepest, and three far apart."""
    pair = wp.tid()
    if pair >= num_pairs[0]:
        return
    ground, geom = pairs[pair][0], pairs[pair][1]
    kind = geom_type[geom]
    if geom_type[ground] != HFIELD or (kind != BALL and kind != CAPSULE):
        return
    world = pair_worlds[pair]
    patch = geom_dataid[world % geom_dataid.shape[0], ground]
    extent, columns = hfield_size[patch], hfield_ncol[patch]
    rows, start = hfield_nrow[patch], hfield_adr[patch]
    size = geom_size[world % geom_size.shape[0], geom]
    radius, half = size[0], wp.vec3(0.0, 0.0, 0.0)
    geoms, margin, gap, dim, friction, solref, solreffriction, solimp, adhesion = (
        contact_params(
            geom_condim,
            geom_priority,
            geom_solmix,
            geom_solref,
            geom_solimp,
            geom_friction,
            geom_margin,
            geom_gap,
            geom_adhesion,
            pair_dim,
            pair_solref,
            pair_solreffriction,
            pair_solimp,
            pair_margin,
            pair_gap,
            pair_adhesion,
            pair_friction,
            pairs,
            pair_ids,
            pair,
            world,
        )
    )
    limit = radius + margin + gap
    # All in the frame of the ground.
    origin, turn = geom_xpos[world, ground], geom_xmat[world, ground]
    back = wp.transpose(turn)
    centre = back @ (geom_xpos[world, geom] - origin)
    if kind == CAPSULE:
        half = size[1] * (back @ (geom_xmat[world, geom] @ wp.vec3(0.0, 0.0, 1.0)))
    reach = wp.vec3(
        wp.abs(half[0]) + limit, wp.abs(half[1]) + limit, wp.abs(half[2]) + limit
    )
    if centre[2] - reach[2] > extent[2]:
        return
    per_x = 0.5 * float(columns - 1) / extent[0]
    per_y = 0.5 * float(rows - 1) / extent[1]
    first_column = wp.max(0, int(wp.floor((centre[0] - reach[0] + extent[0]) * per_x)))
    last_column = int(wp.floor((centre[0] + reach[0] + extent[0]) * per_x))
    first_row = wp.max(0, int(wp.floor((centre[1] - reach[1] + extent[1]) * per_y)))
    last_row = int(wp.floor((centre[1] + reach[1] + extent[1]) * per_y))
    depths, places, normals = Depths(), Points(), Points()
    count, deepest = int(0), int(0)
    for row in range(first_row, wp.min(last_row, rows - 2) + 1):
        for column in range(first_column, wp.min(last_column, columns - 2) + 1):
            at = start + row * columns + column
            x0, y0 = float(column) / per_x - extent[0], float(row) / per_y - extent[1]
            x1, y1 = x0 + 1.0 / per_x, y0 + 1.0 / per_y
            z00, z10 = hfield_data[at] * extent[2], hfield_data[at + 1] * extent[2]
            z01 = hfield_data[at + columns] * extent[2]
            z11 = hfield_data[at + columns + 1] * extent[2]
            highest = wp.max(wp.max(z00, z10), wp.max(z01, z11))
            if highest < centre[2] - reach[2]:
                continue
            corner, across = wp.vec3(x0, y0, z00), wp.vec3(x1, y1, z11)
            for half_cell in range(2):
                b, c = wp.vec3(x1, y0, z10), across
                if half_cell == 1:
                    b, c = across, wp.vec3(x0, y1, z01)
                meets, distance, core, normal = touch_triangle(
                    centre - half, 2.0 * half, corner, b, c
                )
                if not meets or distance >= limit:
                    continue
                slot = count
                if count == MAX_TOUCHED:
                    wp.atomic_or(overflow, world, TOO_MANY)
                    slot = MAX_TOUCHED - 1  # At least the deepest is not lost.
                    if distance - radius >= depths[deepest]:
                        continue
                else:
                    count += 1
                depths[slot] = distance - radius
                places[slot] = core - 0.5 * (radius + distance) * normal
                normals[slot] = normal
                if slot == 0 or depths[slot] < depths[deepest]:
                    deepest = slot
    if count == 0:
        return
    chosen = wp.vec4i(deepest, 0, 0, 0)
    for k in range(MAX_KEPT):
        if k > 0:
            next_one = furthest(places, chosen, k, count)
            if next_one < 0:
                return
            chosen[k] = next_one
        write_contact(
            room,
            k,
            depths[chosen[k]],
            turn @ places[chosen[k]] + origin,
            make_frame(turn @ normals[chosen[k]]),
            margin,
            gap,
            dim,
            friction,
            solref,
            solreffriction,
            solimp,
            adhesion,
            geoms,
            pair_ids[pair],
            world,
            contact_dist,
            contact_pos,
            contact_frame,
            contact_includemargin,
            contact_friction,
            contact_solref,
            contact_solreffriction,
            contact_solimp,
            contact_dim,
            contact_geom,
            contact_efc_address,
            contact_worldid,
            contact_type,
            contact_geomcollisionid,
            contact_adhesion,
            num_contacts,
        )


ARGUMENTS = tuple(signature(touch_ground.func).parameters)

_convex_narrowphase = collision_driver.convex_narrowphase


def narrowphase(model: Any, data: Any, context: Any, pairs: list) -> None:
    """Write the contacts of balls and capsules with height fields, then all others."""
    if model.nhfield:
        named = {
            "geom_xpos": data.geom_xpos,
            "geom_xmat": data.geom_xmat,
            "room": data.naconmax,
            "num_pairs": data.ncollision,
            "pairs": context.collision_pair,
            "pair_ids": context.collision_pairid,
            "pair_worlds": context.collision_worldid,
            "num_contacts": data.nacon,
            "overflow": data.overflow,
        }
        named |= {f"contact_{k}": v for k, v in vars(data.contact).items()}
        # What is left is the model's, by its own names.
        given = [named[k] if k in named else getattr(model, k) for k in ARGUMENTS]
        wp.launch(touch_ground, dim=data.naconmax, inputs=given)
        own = {(GeomType.HFIELD, GeomType.SPHERE), (GeomType.HFIELD, GeomType.CAPSULE)}
        pairs = [pair for pair in pairs if pair not in own]
    _convex_narrowphase(model, data, context, pairs)


collision_driver.convex_narrowphase = narrowphase
# Kernels are built when first launched, and then look it up by this name.
collision_gjk.gjk_phase = search
