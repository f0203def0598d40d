"""The ground that robots stand on: what a model gets of it, and how high it is."""
# MuJoCo's extension modules carry no type stubs.
# pyright: reportAttributeAccessIssue=false

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import mujoco


class Ground(ABC):
    """A surface that all worlds of a batch share.

    A robot is built on a ground and carries it (`robot.ground`); a row of a pool
    chooses its place on it, the x and y of its start. Grounds are values: bodies share a
    batch only if their grounds are equal. Points and heights are numpy arrays or torch
    tensors, whichever is given.
    """

    is_plane: bool = False
    """Whether a straight shank stays clear of it while knee and foot do."""

    @abstractmethod
    def add_to(self, spec: mujoco.MjSpec) -> None:
        """Add the surface to the world body: geoms of contype 1 and conaffinity 0."""

    @abstractmethod
    def height_at(self, xy: Any) -> Any:
        """Return the height of the surface at points [..., 2], [...], m."""

    def above(self, position: Any) -> Any:
        """Return how high points [..., 3] are above the surface below them, [...], m."""
        return position[..., 2] - self.height_at(position[..., :2])


@dataclass(frozen=True)
class Flat(Ground):
    """An endless plane at z = 0."""

    is_plane = True

    def add_to(self, spec: mujoco.MjSpec) -> None:
        """Lay the plane, lit from above; robots meet it and not themselves."""
        spec.worldbody.add_light(
            type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
            pos=[0.0, 0.0, 2.0],
            dir=[-0.2, 0.3, -1.0],
            diffuse=[0.35, 0.35, 0.35],
            specular=[0.1, 0.1, 0.1],
        )
        spec.worldbody.add_geom(
            name="floor",
            type=mujoco.mjtGeom.mjGEOM_PLANE,
            size=[0.0, 0.0, 1.0],
            contype=1,
            conaffinity=0,
            rgba=[1.0, 1.0, 1.0, 1.0],
        )

    def height_at(self, xy: Any) -> Any:
        return 0.0 * xy[..., 0]

    def above(self, position: Any) -> Any:
        # A view: no arithmetic in a step, and no kernel on a GPU.
        return position[..., 2]


FLAT = Flat()
