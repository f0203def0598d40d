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
from mujoco_warp._src.types import GeomType, vec5

from horizon_rl.physics.gpu_triangles import touch_triangle

wp.set_module_options({"enable_backward": False})

HFIELD, BALL, CAPSULE = (
    wp.constant(int(kind))
    for kind in (GeomType.HFIELD, GeomType.SPHERE, GeomType.CAPSULE)
)
MAX_KEPT = wp.constant(4)
"""Contacts of one geom that reach the solver."""
APART_M = wp.constant(1e-3)
"""Contacts nearer to each other than this are one."""


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


@wp.struct
class Cells:
    """The part of a height field that a geom is above, in the frame of the ground."""

    first: wp.vec2i
    last: wp.vec2i
    dx: float
    dy: float
    extent: wp.vec4
    num_columns: int
    start: int


@wp.func
def cells_below(
    low: wp.vec3, high: wp.vec3, extent: wp.vec4, rows: int, columns: int, start: int
) -> Cells:
    """Return the cells of a height field below a box."""
    cells = Cells()
    cells.extent = extent
    cells.num_columns = columns
    cells.start = start
    dx, dy = 2.0 * extent[0] / float(columns - 1), 2.0 * extent[1] / float(rows - 1)
    x0, y0 = low[0] + extent[0], low[1] + extent[1]
    x1, y1 = high[0] + extent[0], high[1] + extent[1]
    first = wp.vec2i(int(wp.floor(x0 / dx)), int(wp.floor(y0 / dy)))
    last = wp.vec2i(int(wp.floor(x1 / dx)), int(wp.floor(y1 / dy)))
    cells.dx = dx
    cells.dy = dy
    cells.first = wp.max(first, wp.vec2i(0, 0))
    cells.last = wp.min(last, wp.vec2i(columns - 2, rows - 2))
    return cells


@wp.func
def find_contact(
    begin: wp.vec3,
    along: wp.vec3,
    radius: float,
    limit: float,
    lowest: float,
    cells: Cells,
    heights: wp.array[float],
    kept: wp.mat33,
    num_kept: int,
) -> tuple[int, bool, float, wp.vec3, wp.vec3]:
    """Return how many triangles are touched, and one contact: depth, place and normal.

    At first it is the deepest; then that which lies furthest from those kept, if any is
    far enough. To look again costs less than to remember: few geoms touch anything, and
    tables of all contacts would not fit the registers.
    """
    count, found, best = int(0), bool(False), float(-1e9)
    if num_kept > 0:
        best = APART_M
    depth, place, normal = float(0.0), wp.vec3(), wp.vec3()
    extent, columns, dx, dy = cells.extent, cells.num_columns, cells.dx, cells.dy
    for row in range(cells.first[1], cells.last[1] + 1):
        for column in range(cells.first[0], cells.last[0] + 1):
            at = cells.start + row * columns + column
            x0, y0 = float(column) * dx - extent[0], float(row) * dy - extent[1]
            x1, y1 = x0 + dx, y0 + dy
            z00, z10 = heights[at] * extent[2], heights[at + 1] * extent[2]
            z01 = heights[at + columns] * extent[2]
            z11 = heights[at + columns + 1] * extent[2]
            if wp.max(wp.max(z00, z10), wp.max(z01, z11)) < lowest:
                continue
            corner, across = wp.vec3(x0, y0, z00), wp.vec3(x1, y1, z11)
            for half_cell in range(2):
                b, c = wp.vec3(x1, y0, z10), across
                if half_cell == 1:
                    b, c = across, wp.vec3(x0, y1, z01)
                meets, distance, core, up = touch_triangle(begin, along, corner, b, c)
                if not meets or distance >= limit:
                    continue
                count += 1
                here, merit = core - 0.5 * (radius + distance) * up, radius - distance
                if num_kept > 0:
                    merit = float(1e9)
                for k in range(num_kept):
                    merit = wp.min(merit, wp.length(here - kept[k]))
                if merit > best:
                    best, found = merit, True
                    depth, place, normal = distance - radius, here, up
    return count, found, depth, place, normal


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
    cells = cells_below(centre - reach, centre + reach, extent, rows, columns, start)
    begin, lowest = centre - half, centre[2] - reach[2]
    kept, num_kept = wp.mat33(), int(0)
    while True:
        count, found, depth, place, normal = find_contact(
            begin, 2.0 * half, radius, limit, lowest, cells, hfield_data, kept, num_kept
        )
        if not found:
            return
        write_contact(
            room,
            num_kept,
            depth,
            turn @ place + origin,
            make_frame(turn @ normal),
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
        if count == 1 or num_kept + 1 == MAX_KEPT:
            return
        kept[num_kept] = place
        num_kept += 1


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
