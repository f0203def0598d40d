"""Contacts of balls and capsules with height fields, as MuJoCo has them.

A height field is a set of prisms. mujoco_warp 3.14 takes a contact for one with a prism's
side if its search once went up and once down, and then makes it as deep as a corner of
the prism is high: 2 to 6 % of a foot's contacts on rough ground were up to 0.14 m too deep,
which kicks robots into the air. Importing this module puts the plain rule in its place:
the contact lies where core and prism are nearest, its depth is what the radius adds.
"""
# Kernels are Python in form only: Warp compiles them, checkers cannot follow.
# pyright: reportArgumentType=false, reportPrivateUsage=false
# pyright: reportGeneralTypeIssues=false

import warp as wp
from mujoco_warp._src import collision_gjk
from mujoco_warp._src.collision_core import Geom
from mujoco_warp._src.collision_gjk import GJKResult


@wp.func
def inflate(
    result: GJKResult,
    geom1: Geom,
    geom2: Geom,
    geomtype1: int,
    geomtype2: int,
    margin1: float,
    margin2: float,
) -> tuple[float, wp.vec3, wp.vec3]:
    """Return distance and nearest points of two cores with their radii added."""
    normal = wp.normalize(result.x2 - result.x1)
    return (
        result.dist - margin1 - margin2,
        result.x1 + margin1 * normal,
        result.x2 - margin2 * normal,
    )


# Kernels are built when first launched, and then look it up by this name.
collision_gjk._inflate = inflate
