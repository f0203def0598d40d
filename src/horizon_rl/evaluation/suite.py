"""Suites: frozen lists of evaluation conditions, the same for everyone.

A suite is a value. Its scenarios follow from its numbers alone, drawn from the raw bits
of a counter-based generator, so that no version of any library changes them; and its
hash covers every number, so that two results with one hash met the same conditions.
"""

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from horizon_rl.domains import (
    Catalogue,
    Instances,
    Levels,
    Range,
    paper_catalogue,
    place,
)
from horizon_rl.evaluation.robot_facts import robot_facts
from horizon_rl.physics import build_pool, effect_digests
from horizon_rl.physics.motors import MOTOR_GROUP, Motors
from horizon_rl.robots import REFERENCE, Robot, load_robot
from horizon_rl.support.errors import InputError, require
from horizon_rl.support.records import dumps, encode
from horizon_rl.task import Scenarios, SuccessCfg, TaskCfg
from horizon_rl.task.scenarios import place_commands, place_pushes

PUSH = "disturbance.push_velocity"
"""The parameter with two draws, x and y, per push."""


Spans = dict[str, tuple[Range, ...]]
"""Per parameter one range for each of its draws."""


def spans_at(catalogue: Catalogue, levels: Levels) -> Spans:
    """Return the ranges that groups have at their levels, the others at the baseline."""
    ranges, parameters = catalogue.ranges(levels), catalogue.parameters
    return {name: (ranges[name],) * p.draws for name, p in parameters.items()}


@dataclass(frozen=True, kw_only=True)
class Column:
    """One condition: a body, and a range for every draw of every parameter."""

    name: str
    spans: Spans
    """In the reference body's units."""
    robot: str = REFERENCE
    """Preset, intervention (go2+stilts), or MJCF file."""
    motors: Motors = "scaled"


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Columns of scenarios, and what counts as a success in them."""

    name: str
    columns: tuple[Column, ...]
    num_episodes: int = 1024
    """Scenarios per column, one episode each."""
    seed: int = 0
    """All columns draw the same: scenario 7 has one command in each of them, and its
    parameters lie at the same place of each column's ranges."""
    severity: float | None = None
    """Level of the groups that a column shifts; None where none does."""
    about: str = ""
    task: TaskCfg = field(default_factory=TaskCfg)
    success: SuccessCfg = field(default_factory=SuccessCfg)
    catalogue: Catalogue = field(default_factory=paper_catalogue)

    def __post_init__(self):
        require("episodes", self.num_episodes, 1, whole=True)
        require("seed", self.seed, 0, whole=True)
        if not self.columns:
            raise InputError(f"suite '{self.name}' has no columns")
        if len({column.name for column in self.columns}) < len(self.columns):
            raise InputError(f"suite '{self.name}' has two columns of one name")

    @cached_property
    def frozen(self) -> dict[str, "FrozenColumn"]:
        """Every column's scenarios, by the column's name."""
        return {column.name: freeze(self, column) for column in self.columns}

    @cached_property
    def digest(self) -> str:
        """Content hash: whatever can change a result changes it."""
        facts = {
            "columns": {name: column.digest for name, column in self.frozen.items()},
            "success": encode(self.success),
        }
        return hashlib.sha256(dumps(facts).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True, eq=False)
class FrozenColumn:
    """A column's scenarios as plain numbers."""

    robot: Robot
    robot_facts: dict[str, Any]
    """What identifies it: see `robot_facts`."""
    catalogue: Catalogue
    """The parameters that apply."""
    instances: Instances
    commands: np.ndarray
    push_steps: np.ndarray
    noise_seed: int
    task: TaskCfg

    @cached_property
    def digest(self) -> str:
        """Content hash of every number, floats as their IEEE bytes.

        Columns that differ only in their name share it.
        """
        facts = {
            "body": self.robot_facts,
            "scaling": {
                name: (p.mass_power, p.length_power)
                for name, p in self.catalogue.parameters.items()
            },
            "noise_seed": self.noise_seed,
            "task": encode(self.task),
        }
        if own := effect_digests(self.catalogue):
            facts["effects"] = own
        digest = hashlib.sha256(dumps(facts).encode())
        arrays = {"commands": self.commands, "push_steps": self.push_steps}
        for name, values in (self.instances | arrays).items():
            digest.update(f"{name}{values.shape}".encode())
            digest.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self.commands)

    def scenarios(self, num_episodes: int) -> Scenarios:
        """Build the worlds of the first scenarios."""
        n = num_episodes
        pool = build_pool(
            [self.robot],
            self.catalogue,
            {name: values[:n] for name, values in self.instances.items()},
            np.zeros(n, dtype=int),
        )
        return Scenarios(pool, self.commands[:n], self.push_steps[:n])


def freeze(suite: Suite, column: Column) -> FrozenColumn:
    """Draw a column's scenarios."""
    n, task = suite.num_episodes, suite.task
    catalogue = suite.catalogue
    if column.motors == "own":
        others = (group for group in catalogue.groups if group.name != MOTOR_GROUP)
        catalogue = Catalogue(tuple(others))
    instances = {
        name: _draw(suite.seed, name, n, column.spans[name])
        for name in catalogue.parameters
    }
    num_pushes = catalogue.parameters[PUSH].draws // 2 if PUSH in instances else 0
    commands = uniforms(suite.seed, "commands", (n, task.num_commands, 4))
    pushes = uniforms(suite.seed, "pushes", (n, num_pushes))
    return FrozenColumn(
        robot=load_robot(column.robot),
        robot_facts=robot_facts(column.robot),
        catalogue=catalogue,
        instances=instances,
        commands=place_commands(commands, task.command),
        push_steps=place_pushes(pushes, task.push),
        noise_seed=suite.seed,
        task=task,
    )


def uniforms(seed: int, label: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return frozen numbers in [0, 1); a longer table begins with the same rows.

    Every label has a stream of its own, so that another parameter in the catalogue does
    not shift the draws of the rest.
    """
    key = hashlib.sha256(f"{seed}:{label}".encode()).digest()[:16]
    bits = np.random.Philox(key=int.from_bytes(key, "little")).random_raw(prod(shape))
    return ((bits >> np.uint64(11)) * 2.0**-53).reshape(shape)


def _draw(seed: int, name: str, n: int, spans: tuple[Range, ...]) -> np.ndarray:
    unit = uniforms(seed, name, (n, len(spans)))
    low, high = np.array([[s.low, s.high] for s in spans]).T
    values = place(unit, low, high)
    return values[:, 0] if len(spans) == 1 else values
