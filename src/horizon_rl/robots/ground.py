"""The ground that robots stand on: what a model gets of it, and how high it is."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np


class Ground(ABC):
    """What the worlds of a batch stand on.

    A robot is built on a ground and carries it (`robot.ground`); a row of a pool
    chooses its patch, where there are several, and its place, the x and y of its start.
    Grounds are values: bodies share a batch only if their grounds are equal. Points and
    heights are numpy arrays; tensors where `on` has put the ground on a device.
    """

    is_plane: bool = False
    """Whether a straight shank stays clear of it while knee and foot do."""
    period_m: float = math.inf
    """It repeats after this in x and y. Robots that leave a period are put back by it."""
    digest: str = ""
    """Hash of its heights, for suites; a flat one has none."""

    @abstractmethod
    def add_to(self, spec: mujoco.MjSpec) -> None:
        """Add the surface to the world body: geoms of contype 1 and conaffinity 0."""

    @abstractmethod
    def height_at(self, xy: Any, patch: Any = None) -> Any:
        """Return the height at points [..., 2] of patches [...], m; None: its own."""

    def above(self, position: Any, patch: Any = None) -> Any:
        """Return how high points [..., 3] are above the surface below them, [...], m."""
        return position[..., 2] - self.height_at(position[..., :2], patch)

    def nearest(self, way: np.ndarray) -> np.ndarray:
        """Return the shortest of the ways [..., 2] that lead to the same ground."""
        period_m = self.period_m
        return way if math.isinf(period_m) else way - period_m * np.rint(way / period_m)

    def on(self, convert: Callable[[np.ndarray], Any]) -> Any:
        """Return what measures heights of tensors: `convert` makes one of an array."""
        return self


@dataclass(frozen=True)
class Flat(Ground):
    """An endless plane at z = 0."""

    is_plane = True

    def add_to(self, spec: mujoco.MjSpec) -> None:
        """Lay the plane; robots meet it and not themselves."""
        add_light(spec)
        spec.worldbody.add_geom(
            name="floor",
            type=mujoco.mjtGeom.mjGEOM_PLANE,
            size=[0.0, 0.0, 1.0],
            contype=1,
            conaffinity=0,
            rgba=[1.0, 1.0, 1.0, 1.0],
        )

    def height_at(self, xy: Any, patch: Any = None) -> Any:
        return 0.0 * xy[..., 0]

    def above(self, position: Any, patch: Any = None) -> Any:
        # A view: no arithmetic in a step, and no kernel on a GPU.
        return position[..., 2]


FLAT = Flat()


def free_name(elements: Iterable[Any], name: str) -> str:
    """Return a name that none of a file's elements has: this one, or a longer one."""
    taken = {element.name for element in elements}
    while name in taken:
        name += "_"
    return name


def add_light(spec: mujoco.MjSpec) -> None:
    """Light the ground from above, unless the file that brings a robot has a light."""
    if list(spec.lights):
        return
    spec.worldbody.add_light(
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        pos=[0.0, 0.0, 2.0],
        dir=[-0.2, 0.3, -1.0],
        diffuse=[0.35, 0.35, 0.35],
        specular=[0.1, 0.1, 0.1],
    )
