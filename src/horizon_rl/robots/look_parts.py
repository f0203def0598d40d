"""Parts of a robot's look: trunk, legs, heads and what else is on it, as solids."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import mujoco
import numpy as np

BOX = mujoco.mjtGeom.mjGEOM_BOX
BALL = mujoco.mjtGeom.mjGEOM_ELLIPSOID
CAPSULE = mujoco.mjtGeom.mjGEOM_CAPSULE
CYLINDER = mujoco.mjtGeom.mjGEOM_CYLINDER
TURNED = {
    "x": np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]),
    "y": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]]),
    "z": np.eye(3),
}
"""Rotations that bring z, along which capsules and cylinders lie, to an axis."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """Colours, as rrggbb, and what a robot has on it."""

    trunk: str
    deck: str
    """Its upper side, and the hips."""
    head: str
    thigh: str
    shank: str
    accent: str
    roundness: float = 0.5
    """Radius of the trunk's edges, as a share of half its height."""
    features: tuple[str, ...] = ()
    """Of `FEATURES`."""


@dataclass(frozen=True, eq=False)
class Shape:
    """A convex shape fixed to a body."""

    body: int
    kind: int
    """mjtGeom."""
    size: np.ndarray
    pos: np.ndarray
    mat: np.ndarray
    """[3, 3] from the shape's axes to the body's."""
    rgba: np.ndarray

    @property
    def extent_m(self) -> np.ndarray:
        """[3] half extents along the shape's own axes."""
        radius, length, _ = self.size
        if self.kind == CAPSULE:
            return np.array((radius, radius, length + radius))
        return self.size[[0, 0, 1]] if self.kind == CYLINDER else self.size


def make_shape(body: int, kind: int, size, pos, color: str, axis: str = "z") -> Shape:
    size = np.array([*size, *[0.0] * (3 - len(size))], float)
    return Shape(body, kind, size, np.array(pos), TURNED[axis], to_rgba(color))


@dataclass(frozen=True, eq=False)
class Trunk:
    """Where things can be put on a trunk."""

    body: int
    front: float
    """x of the front hips, of the rear ones, and of the box's front face."""
    rear: float
    nose: float
    half: np.ndarray
    """[y, z] half width and height."""
    z: float

    @property
    def middle(self) -> float:
        return (self.front + self.rear) / 2.0

    def add(self, kind, size, pos, color: str, axis: str = "z") -> Shape:
        place = np.add(pos, (0.0, 0.0, self.z))
        return make_shape(self.body, kind, size, place, color, axis)

    def add_box(self, center, half, radius: float, color: str) -> list[Shape]:
        """A box with round edges."""
        half = np.array(half)
        radius = min(radius, *(0.98 * half))
        inner, axes = half - radius, np.arange(3)
        sizes = (np.where(axes == axis, half, inner) for axis in axes)
        shapes = [self.add(BOX, size, center, color) for size in sizes]
        for axis, letter in enumerate("xyz"):
            size = radius, inner[axis]
            for signs in product((-1.0, 1.0), repeat=2):
                place = center + np.insert(signs, axis, 0.0) * inner
                shapes.append(self.add(CAPSULE, size, place, color, letter))
        return shapes


def add_torso(trunk: Trunk, look: Look) -> list[Shape]:
    """A rounded box from hip to hip, with a deck."""
    half_y, half_z = trunk.half
    over = 0.7 * half_z
    half_x = (trunk.front - trunk.rear) / 2.0 + over
    center, radius = (trunk.middle, 0.0, 0.0), look.roundness * half_z
    deck = (0.86 * half_x, 0.72 * half_y, 0.24 * half_z)
    above = (trunk.middle, 0.0, 0.86 * half_z)
    return [
        *trunk.add_box(center, (half_x, half_y, half_z), radius, look.trunk),
        *trunk.add_box(above, deck, 0.2 * half_z, look.deck),
    ]


def add_leg(model: mujoco.MjModel, leg: str, look: Look) -> list[Shape]:
    """Motors at hip and thigh, a cover on the thigh, a knee."""
    hip, thigh, calf = (
        model.body(f"{leg}_{part}") for part in ("hip", "thigh", "calf")
    )
    aside, length = thigh.pos.copy(), abs(float(calf.pos[2]))
    radius, side = 0.19 * length, float(np.sign(aside[1])) or 1.0
    width = max(0.45 * abs(float(aside[1])), 0.1 * length)
    middle = (float(aside[0]) / 2.0, float(aside[1]) / 2.0, float(aside[2]) / 2.0)
    origin, outside = (0.0, 0.0, 0.0), (0.0, side * 0.5 * radius, 0.0)
    cover = (0.72 * radius, 0.45 * radius, 0.42 * length)
    parts = [
        (hip, CYLINDER, (0.85 * radius, 0.9 * radius), origin, look.deck, "x"),
        (hip, CYLINDER, (0.7 * radius, width), middle, look.deck, "y"),
        (thigh, CYLINDER, (radius, 0.55 * radius), origin, look.thigh, "y"),
        (thigh, CYLINDER, (0.62 * radius, 0.1 * radius), outside, look.accent, "y"),
        (thigh, BALL, cover, (0.0, 0.0, -0.36 * length), look.thigh, "z"),
        (calf, CYLINDER, (0.5 * radius, 0.4 * radius), origin, look.shank, "y"),
    ]
    return [make_shape(body.id, *part) for body, *part in parts]


# Features.


def _head(trunk: Trunk, look: Look) -> list[Shape]:
    """A head before the hips, with a dark face and a light."""
    half_y, half_z = 0.78 * trunk.half[0], 0.8 * trunk.half[1]
    start = trunk.front + 0.3 * trunk.half[1]
    half_x = max(0.5 * (trunk.nose - start), 0.5 * half_z)
    x = start + half_x
    center, half = (x, 0.0, 0.1 * half_z), (half_x, half_y, half_z)
    shapes = trunk.add_box(center, half, 0.6 * half_z, look.head)
    face, front = (0.04 * half_z, 0.72 * half_y, 0.34 * half_z), x + half_x
    shapes.append(trunk.add(BOX, face, (front, 0.0, 0.25 * half_z), "101318"))
    for side in (-1.0, 1.0):
        eye, place = 0.13 * half_z, (front, side * 0.42 * half_y, 0.25 * half_z)
        size = (0.08 * half_z, eye, eye)
        shapes.append(trunk.add(BALL, size, place, look.accent))
    return shapes


def _chin(trunk: Trunk, look: Look) -> list[Shape]:
    """A lidar's dome below the head."""
    radius = 0.5 * trunk.half[1]
    place = (trunk.nose - 0.6 * radius, 0.0, -0.75 * trunk.half[1])
    return [
        trunk.add(BALL, (radius, radius, radius), place, "16181c"),
        trunk.add(CYLINDER, (1.04 * radius, 0.12 * radius), place, "8a9099"),
    ]


def _ears(trunk: Trunk, look: Look) -> list[Shape]:
    high = 0.95 * trunk.half[1]
    x, y = trunk.nose - 0.9 * trunk.half[1], 0.45 * trunk.half[0]
    size = (0.16 * high, 0.1 * high, 0.62 * high)
    return [trunk.add(BALL, size, (x, s * y, 1.25 * high), look.head) for s in (-1, 1)]


def _neck(trunk: Trunk, look: Look) -> list[Shape]:
    """A dog's head on a neck, above the trunk."""
    high = trunk.half[1]
    x, y = trunk.front + 0.9 * high, 0.5 * trunk.half[0]
    center, half = (x + 0.7 * high, 0.0, 1.5 * high), (high, y, 0.5 * high)
    shapes = trunk.add_box(center, half, 0.4 * high, look.head)
    for part in range(3):
        place = (x - 0.3 * high * (1 - part / 2), 0.0, (0.5 + 0.35 * part) * high)
        size = (0.5 * high, 0.75 * y, 0.45 * high)
        shapes.append(trunk.add(BALL, size, place, look.deck))
    face = (0.04 * high, 0.7 * y, 0.16 * high)
    shapes.append(trunk.add(BOX, face, (x + 1.7 * high, 0.0, 1.6 * high), "101318"))
    moved = replace(trunk, nose=x + 0.9 * high, z=trunk.z + 0.9 * high)
    return shapes + _ears(replace(moved, half=0.75 * trunk.half), look)


def _caps(trunk: Trunk, look: Look) -> list[Shape]:
    """Dark ends of a trunk without a head, with cameras in the front one."""
    half_y, half_z = trunk.half
    shapes = []
    for end, sign in ((trunk.front, 1.0), (trunk.rear, -1.0)):
        half = (0.75 * half_z, 0.97 * half_y, 0.88 * half_z)
        center = (end + sign * 0.62 * half_z, 0.0, 0.0)
        shapes += trunk.add_box(center, half, 0.45 * half_z, look.head)
    front = trunk.front + 1.37 * half_z
    for side in (-1.0, 1.0):
        place = (front, side * 0.4 * half_y, 0.2 * half_z)
        lens = (0.05 * half_z, 0.24 * half_y, 0.28 * half_z)
        shapes.append(trunk.add(BOX, lens, place, look.accent))
    return shapes


def _puck(trunk: Trunk, look: Look) -> list[Shape]:
    """A lidar on the deck, behind the middle."""
    radius = 0.45 * trunk.half[0]
    x, z = trunk.middle - 0.45 * (trunk.middle - trunk.rear), 1.1 * trunk.half[1]
    return [
        trunk.add(CYLINDER, (1.1 * radius, 0.25 * radius), (x, 0.0, z), look.deck),
        trunk.add(
            CYLINDER, (radius, 0.5 * radius), (x, 0.0, z + 0.6 * radius), "16181c"
        ),
        trunk.add(
            CYLINDER, (radius, 0.1 * radius), (x, 0.0, z + 1.2 * radius), look.accent
        ),
    ]


def _rails(trunk: Trunk, look: Look) -> list[Shape]:
    """Handles along the deck."""
    radius, length = 0.1 * trunk.half[1], 0.42 * (trunk.front - trunk.rear)
    y, z = 0.7 * trunk.half[0], 1.45 * trunk.half[1]
    shapes = []
    for side in (-1.0, 1.0):
        place = (trunk.middle, side * y, z)
        shapes.append(trunk.add(CAPSULE, (radius, length), place, look.accent, "x"))
        for end in (-0.9, 0.9):
            post = (trunk.middle + end * length, side * y, 1.15 * trunk.half[1])
            size = (radius, 0.3 * trunk.half[1])
            shapes.append(trunk.add(CAPSULE, size, post, look.accent))
    return shapes


def _bumpers(trunk: Trunk, look: Look) -> list[Shape]:
    """Cages at both ends."""
    half_y, half_z = trunk.half
    radius, shapes = 0.13 * half_z, []
    for x in (trunk.front + 1.5 * half_z, trunk.rear - 1.5 * half_z):
        for z in (-0.55 * half_z, 0.55 * half_z):
            size = (radius, 0.75 * half_y)
            shapes.append(trunk.add(CAPSULE, size, (x, 0.0, z), "26292e", "y"))
        for side in (-1.0, 1.0):
            place = (x, side * 0.75 * half_y, 0.0)
            size = (radius, 0.55 * half_z)
            shapes.append(trunk.add(CAPSULE, size, place, "26292e"))
    return shapes


def _stripe(trunk: Trunk, look: Look) -> list[Shape]:
    """A band along either flank."""
    length = 0.4 * (trunk.front - trunk.rear)
    size = (length, 0.02 * trunk.half[0], 0.14 * trunk.half[1])
    y = 1.0 * trunk.half[0]
    return [
        trunk.add(BOX, size, (trunk.middle, side * y, 0.1 * trunk.half[1]), look.accent)
        for side in (-1.0, 1.0)
    ]


FEATURES: dict[str, Callable[[Trunk, Look], list[Shape]]] = {
    "head": _head,
    "chin": _chin,
    "neck": _neck,
    "caps": _caps,
    "puck": _puck,
    "rails": _rails,
    "bumpers": _bumpers,
    "stripe": _stripe,
}


def to_rgba(color: str) -> np.ndarray:
    return np.array([*(int(color[k : k + 2], 16) / 255.0 for k in (0, 2, 4)), 1.0])
