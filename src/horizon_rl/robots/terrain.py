"""Rough ground as many small height fields, of which every world has one.

A patch is a kind of ground at one size: stairs of 8 cm. Patches are assets of one model,
and a row of a pool names its own, so that neighbouring worlds stand on different ground
in the same batch. All patches repeat after `PERIOD_M` in x and y: a robot that leaves one
is put back by whole periods and finds the same ground, so none has an edge, however long
an episode lasts.
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import mujoco
import numpy as np

from horizon_rl.robots.ground import Ground, add_light, free_name

PERIOD_M = 6.4
HALF_M = 4.8
"""Half the side of a height field. On each side it shows 1.6 m of the next period: more
than any robot reaches out of the one that its trunk is in."""
BASE_M = 0.5
"""Thickness of the ground below its lowest point."""
LANDING_M = 0.8
"""Level ground at foot and top of a slope or flight of stairs, along x."""
FOOT_X_M, TOP_X_M = -PERIOD_M / 4.0, PERIOD_M / 4.0
TREAD_M, NUM_STEPS = 0.3, 8
BLOCK_M = 0.4


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of ground, at a ladder of sizes."""

    name: str
    sizes: tuple[float, ...]
    """Each is a patch of its own; others are rounded to the nearest."""
    cell_m: tuple[float, float]
    """Grid of the height field along x and y."""
    shape: Callable[[np.ndarray, np.ndarray, float], np.ndarray]
    """Heights over a grid [rows, columns] of x and y in the period, for a size."""
    rises: bool = False
    """Whether it goes up and down along x. Then robots begin at its foot, or, where the
    size is negative, at its top; else they begin anywhere."""

    @property
    def low(self) -> float:
        return -self.sizes[-1] if self.rises else 0.0


def ramp(x: np.ndarray, y: np.ndarray, angle_rad: float) -> np.ndarray:
    """Rise along x from a landing to a landing, and come down again."""
    run = _from_foot(x) - LANDING_M / 2.0
    return math.tan(angle_rad) * run.clip(0.0, PERIOD_M / 2.0 - LANDING_M) + 0.0 * y


def stairs(x: np.ndarray, y: np.ndarray, step_m: float) -> np.ndarray:
    """Climb a flight along x from a landing to a landing, and come down again."""
    risers = (_from_foot(x) - LANDING_M / 2.0) / TREAD_M
    # A riser stands at a point of the grid, wherever rounding puts that.
    return step_m * np.floor(risers + 1.0 + 1e-6).clip(0, NUM_STEPS) + 0.0 * y


def noise(x: np.ndarray, y: np.ndarray, height_m: float) -> np.ndarray:
    """Let every point of a 10 cm grid lie anywhere up to a height."""
    return height_m * _lottery(x, y, 0.1)


def blocks(x: np.ndarray, y: np.ndarray, height_m: float) -> np.ndarray:
    """Lay a pavement of square blocks, each of its own height up to the greatest."""
    return height_m * _lottery(x, y, BLOCK_M)


def _from_foot(x: np.ndarray) -> np.ndarray:
    """Return how far x is from the nearest foot of a rise, at most half a period."""
    return np.abs((x - FOOT_X_M + PERIOD_M / 2.0) % PERIOD_M - PERIOD_M / 2.0)


def _lottery(x: np.ndarray, y: np.ndarray, tile_m: float) -> np.ndarray:
    """Draw a number for every tile of the period, the least 0 and the greatest 1.

    From the raw bits of a generator, which no version of a library changes.
    """
    count = round(PERIOD_M / tile_m)
    bits = np.random.Philox(key=count).random_raw(count * count)
    drawn = (bits >> np.uint64(11)).reshape(count, count) * 2.0**-53
    drawn = (drawn - drawn.min()) / (drawn.max() - drawn.min())
    column, row = (np.floor(z / tile_m + 1e-6).astype(int) % count for z in (x, y))
    return drawn[row, column]


def _ladder(step: float, count: int) -> tuple[float, ...]:
    return tuple(round(step * number, 6) for number in range(1, count + 1))


# A coarser grid is faster: a foot meets fewer prisms, and fewer contacts reach the solver.
# Along x stairs need a fine one, so that a riser of 8 cm is as steep as 58 degrees.
KINDS = (
    Kind(name="noise", sizes=_ladder(0.01, 10), cell_m=(0.1, 0.1), shape=noise),
    Kind(
        name="slope",
        sizes=_ladder(math.radians(2.5), 10),
        cell_m=(0.4, 0.4),
        shape=ramp,
        rises=True,
    ),
    Kind(
        name="stairs",
        sizes=_ladder(0.01, 15),
        cell_m=(0.05, 0.4),
        shape=stairs,
        rises=True,
    ),
    Kind(name="blocks", sizes=_ladder(0.025, 6), cell_m=(0.1, 0.1), shape=blocks),
)


LEVEL = Kind(
    name="flat", sizes=(0.0,), cell_m=(0.8, 0.8), shape=lambda x, y, _: 0.0 * x
)


@dataclass(frozen=True)
class Surface:
    """The heights of all patches, as arrays or as tensors on a device."""

    heights: Any
    """All points of all grids, one after the other, m."""
    grids: Any
    """[patches, 4] where each begins, its columns, points per metre along x and y."""

    def height_at(self, xy: Any, patch: Any = 0) -> Any:
        """Interpolate as MuJoCo's height fields do: two triangles to a cell."""
        grid = self.grids[_whole(patch)]
        begin, columns, per_x, per_y = (grid[..., i] for i in range(4))
        place = xy - PERIOD_M * ((xy / PERIOD_M + 0.5) // 1) + HALF_M
        column, row = place[..., 0] * per_x, place[..., 1] * per_y
        u, v = column % 1.0, row % 1.0
        across = _whole(columns)
        # A world whose numbers are bad must not read past the end.
        last = len(self.heights) - 2 - across
        corner = _whole(begin + row // 1 * columns + column // 1).clip(0 * last, last)
        # The third corner of the triangle lies ahead or aside, as the diagonal says.
        third = corner + across + (u >= v) * (1 - across)
        near, middle = self.heights[corner], self.heights[third]
        far = self.heights[corner + across + 1]
        more, less = u.clip(v), u.clip(None, v)
        return near + more * (middle - near) + less * (far - middle)

    def above(self, position: Any, patch: Any = 0) -> Any:
        """Return how high points [..., 3] are above the surface below them, [...], m."""
        return position[..., 2] - self.height_at(position[..., :2], patch)


@dataclass(frozen=True)
class Terrain(Ground):
    """Flat ground and patches of several kinds, of which each world has one."""

    kinds: tuple[Kind, ...] = KINDS
    patch: int = 0
    """The one that is meant where none is named."""
    period_m = PERIOD_M

    @cached_property
    def patches(self) -> tuple[tuple[Kind, float], ...]:
        """Kind and size by the patch's number, which is its asset's; 0 is flat."""
        kinds = (LEVEL, *self.kinds)
        return tuple((kind, size) for kind in kinds for size in kind.sizes)

    @cached_property
    def _grids(self) -> tuple[np.ndarray, ...]:
        """[rows, columns] heights of every patch, m."""
        return tuple(_sample(*patch) for patch in self.patches)

    @cached_property
    def surface(self) -> Surface:
        grids, facts, begin = self._grids, [], 0
        for grid in grids:
            rows, columns = np.array(grid.shape) - 1
            facts.append((begin, columns + 1, columns / HALF_M / 2, rows / HALF_M / 2))
            begin += grid.size
        heights = np.concatenate([grid.ravel() for grid in grids])
        return Surface(heights, np.array(facts))

    @cached_property
    def digest(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Hash of all heights, to a micrometre."""
        micrometres = np.rint(1e6 * self.surface.heights).astype("<i8")
        return hashlib.sha256(micrometres.tobytes()).hexdigest()

    def add_to(self, spec: mujoco.MjSpec) -> None:
        """Add every patch as an asset, and the one geom that shows a world's own.

        The flat one, which the geom has when compiled, is declared as tall as the tallest,
        so that the geom's bounds hold for all of them.
        """
        add_light(spec)
        tallest = max(float(grid.max()) for grid in self._grids)
        for number, grid in enumerate(self._grids):
            rows, columns = grid.shape
            top = float(grid.max()) or tallest
            spec.add_hfield(
                name=f"patch{number}",
                size=[HALF_M, HALF_M, top, BASE_M],
                nrow=rows,
                ncol=columns,
                userdata=grid.astype(np.float32).ravel(),
            )
        look = self._add_look(spec)
        spec.worldbody.add_geom(
            name="floor",
            type=mujoco.mjtGeom.mjGEOM_HFIELD,
            hfieldname="patch0",
            material=look,
            contype=1,
            conaffinity=0,
        )

    def _add_look(self, spec: mujoco.MjSpec) -> str:
        """Add checks of 0.4 m, on which motion and shape show, and a sky; name the material."""
        checker = free_name(spec.textures, "ground")
        look = free_name(spec.materials, "ground")
        spec.add_texture(
            name=free_name(spec.textures, "sky"),
            type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
            builtin=mujoco.mjtBuiltin.mjBUILTIN_FLAT,
            rgb1=[0.91, 0.93, 0.96],
            width=8,
            height=48,
        )
        spec.add_texture(
            name=checker,
            type=mujoco.mjtTexture.mjTEXTURE_2D,
            builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
            rgb1=[0.96, 0.96, 0.97],
            rgb2=[0.86, 0.88, 0.91],
            width=64,
            height=64,
        )
        material = spec.add_material(name=look, texrepeat=[12.0, 12.0])
        material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = checker
        return look

    def height_at(self, xy: Any, patch: Any = None) -> Any:
        return self.surface.height_at(xy, self.patch if patch is None else patch)

    def on(self, convert: Callable[[np.ndarray], Any]) -> Any:
        surface = self.surface
        return replace(
            surface, heights=convert(surface.heights), grids=convert(surface.grids)
        )

    def choose(
        self, sizes: Mapping[str, np.ndarray], choice: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Choose a patch for each row: one of the kinds whose size is not 0, evenly.

        Args:
            sizes: [n] by kind; rounded to the nearest of its ladder.
            choice: [n] numbers in [0, 1] that choose the kind and the place on it.

        Returns:
            The patches [n], places [n, 2] to begin at, and the sizes that remain: those
            of the chosen kinds, as rounded, and 0 for all others.
        """
        asked = np.stack([np.asarray(sizes[kind.name], float) for kind in self.kinds])
        there = asked != 0.0
        count = there.sum(axis=0)
        turn = np.minimum(choice, 1.0 - 1e-9) * count
        # The first of the kinds that are there, the second, ...
        chosen = there & (np.cumsum(there, axis=0) - 1 == np.floor(turn))
        patch, place = np.zeros(asked.shape[1], int), np.zeros((asked.shape[1], 2))
        where, remaining = turn % 1.0, {}
        first = 1
        for kind, size, mine in zip(self.kinds, asked, chosen, strict=True):
            ladder = np.array((0.0, *kind.sizes))
            rung = np.abs(np.abs(size)[:, None] - ladder).argmin(axis=1) * mine
            patch += np.where(rung > 0, first + rung - 1, 0)
            remaining[kind.name] = np.sign(size) * ladder[rung]
            anywhere = PERIOD_M * np.stack([where, (1e3 * where) % 1.0], axis=1)
            if kind.rises:
                anywhere[:, 0] = np.where(size < 0.0, TOP_X_M, FOOT_X_M)
            place[rung > 0] = anywhere[rung > 0]
            first += len(kind.sizes)
        return patch, place - PERIOD_M * np.floor(place / PERIOD_M + 0.5), remaining


TERRAIN = Terrain()


def _sample(kind: Kind, size: float) -> np.ndarray:
    """Return the heights at a patch's grid, [rows, columns], its margins included."""

    def axis(cell_m: float) -> np.ndarray:
        cells, half = round(PERIOD_M / cell_m), round(HALF_M / cell_m)
        number = np.arange(-half, half + 1) + cells // 2
        return cell_m * (number % cells - cells // 2)

    x, y = np.meshgrid(*map(axis, kind.cell_m))
    return kind.shape(x, y, size)


def _whole(numbers: Any) -> Any:
    """Turn numbers without a fraction into indices."""
    if isinstance(numbers, int):
        return numbers
    is_numpy = isinstance(numbers, np.generic | np.ndarray)
    return numbers.astype(int) if is_numpy else numbers.long()
