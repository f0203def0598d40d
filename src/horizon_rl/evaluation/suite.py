"""Suites: frozen lists of evaluation conditions, the same for everyone.

A suite is a value. Its scenarios follow from its numbers alone, drawn from the raw bits
of a counter-based generator, so that no version of any library changes them; and its
hash covers every number, so that two results with one hash met the same conditions.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from horizon_rl.evaluation.draws import Draw
from horizon_rl.physics import build_pool, effect_digests, ground_for
from horizon_rl.physics.draft import BODY_FIELDS, EFFECT_FIELDS, SHARED_FIELDS
from horizon_rl.physics.motors import MOTOR_GROUP, Motors
from horizon_rl.robots import REFERENCE, Robot, load_body, load_robot
from horizon_rl.robots.bodies import is_mjcf
from horizon_rl.support.errors import InputError, require, unknown
from horizon_rl.support.records import dumps, encode, inside
from horizon_rl.task import Scenarios, SuccessCfg, TaskCfg
from horizon_rl.task.scenarios import place_commands, place_pushes

PUSH = "disturbance.push_velocity"
"""The parameter with two draws, x and y, per push."""

Spans = dict[str, tuple[Range, ...]]
"""Per parameter one range for each of its draws."""

WORDS = ("name", "title", "sources", "licence", "estimated")
"""What is said of a body, not what it is."""

MODEL_FIELDS = (
    *BODY_FIELDS,
    *EFFECT_FIELDS,
    *SHARED_FIELDS,
    # What robots built here lack, or all have in common.
    *("dof_solimp", "dof_solref", "geom_fluid", "geom_gap", "geom_solmix"),
    *("eq_active0", "eq_data", "eq_obj1id", "eq_obj2id", "eq_solimp", "eq_solref"),
    *("eq_type", "exclude_signature", "hfield_data", "hfield_size"),
    *("pair_dim", "pair_friction", "pair_gap", "pair_geom1", "pair_geom2"),
    *("pair_margin", "pair_solimp", "pair_solref", "pair_solreffriction"),
    *("tendon_damping", "tendon_frictionloss", "tendon_lengthspring"),
    *("tendon_limited", "tendon_range", "tendon_stiffness", "wrap_objid", "wrap_prm"),
)
"""All that moves an imported robot."""

OPTIONS = (
    *("density", "disableflags", "enableflags", "gravity", "noslip_iterations"),
    *("viscosity", "wind"),
)
"""Ours, whatever a file says; digests of suites hold them since they were the file's."""

ROBOT_FIELDS = (
    *("qpos_adr", "dof_adr", "joint_sign", "joint_offset_rad", "foot_geom_ids"),
    *("default_pose_rad", "torque_limit_nm", "stiffness_nm_rad", "damping_nm_s_rad"),
)


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
    draw: Draw = "dev"
    severity: float | None = None
    """Level of the groups that a column shifts; None where none does."""
    about: str = ""
    curves: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Columns that are one curve against severity, in its order, by the curve's name."""
    chosen: tuple[str, ...] = ()
    """Columns to run; empty: all. The hash is that of the whole suite."""
    command: tuple[float, float, float] | None = None
    """What all scenarios ask for, m/s, m/s, rad/s; None: commands are drawn."""
    combined: tuple[Column, ...] = ()
    """Columns beside its own: groups that are shifted together, as in mass+com."""
    task: TaskCfg = field(default_factory=TaskCfg)
    success: SuccessCfg = field(default_factory=SuccessCfg)
    catalogue: Catalogue = field(default_factory=paper_catalogue)

    def __post_init__(self):
        with inside("episodes"):
            require("episodes", self.num_episodes, 1, whole=True)
        with inside("seed"):
            require("seed", self.seed, 0, whole=True)
        names = {column.name for column in self.columns}
        if not names or len(names) < len(self.columns):
            raise InputError(
                f"suite '{self.name}' needs columns or robots, each of a name of its own"
            )

    @property
    def drawn_seed(self) -> int:
        """What all numbers are drawn from: the seed itself in dev, its hash in test."""
        if self.draw == "dev":
            return self.seed
        key = hashlib.sha256(f"{self.seed}:{self.draw}".encode()).digest()[:8]
        return int.from_bytes(key, "little")

    @cached_property
    def _all_frozen(self) -> dict[str, "FrozenColumn"]:
        return {column.name: freeze(self, column) for column in self.columns}

    @cached_property
    def frozen(self) -> dict[str, "FrozenColumn"]:
        """The scenarios of every column that is run, by the column's name."""
        columns = self._all_frozen | {c.name: freeze(self, c) for c in self.combined}
        return {name: columns[name] for name in self.chosen or columns}

    @property
    def distinct(self) -> dict[str, str]:
        """The first of all columns that are alike but for their name, by their hash."""
        found: dict[str, str] = {}
        for name, column in self.frozen.items():
            found.setdefault(column.digest, name)
        return found

    def choose(self, names: Sequence[str]) -> "Suite":
        """Return the suite with only these columns to run, in its own order.

        Where it shifts groups, names of groups with a + between them are a column too.
        """
        columns = [column.name for column in self.columns]
        combined = dict.fromkeys(name for name in names if name not in columns)
        can_combine = (
            self.severity is not None and len({c.robot for c in self.columns}) == 1
        )
        for name in combined:
            if not can_combine or {*name.split("+")} - {*self.catalogue.names}:
                raise InputError(unknown("column", name, columns))
        own = tuple(name for name in columns if name in names)
        return replace(
            self, chosen=(*own, *combined), combined=tuple(map(self._combine, combined))
        )

    def _combine(self, name: str) -> Column:
        levels = dict.fromkeys(name.split("+"), self.severity or 0.0)
        return replace(
            self.columns[0], name=name, spans=spans_at(self.catalogue, levels)
        )

    @cached_property
    def digest(self) -> str:
        """Content hash: whatever can change a result changes it."""
        facts = {
            "columns": {name: c.digest for name, c in self._all_frozen.items()},
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
        if ground := self.robot.ground.digest:
            facts["ground"] = ground
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
    n, seed = suite.num_episodes, suite.drawn_seed
    task, catalogue = suite.task, suite.catalogue
    if column.motors == "own":
        others = (group for group in catalogue.groups if group.name != MOTOR_GROUP)
        catalogue = Catalogue(tuple(others))
    instances = {}
    for name in catalogue.parameters:
        low, high = np.array([[s.low, s.high] for s in column.spans[name]]).T
        values = place(uniforms(seed, name, (n, len(low))), low, high)
        instances[name] = values[:, 0] if len(low) == 1 else values
    num_pushes = catalogue.parameters[PUSH].draws // 2 if PUSH in instances else 0
    drawn = uniforms(seed, "commands", (n, task.num_commands, 4))
    commands = place_commands(drawn, task.command)
    if suite.command is not None:
        commands = np.broadcast_to(suite.command, commands.shape)
    pushes = uniforms(seed, "pushes", (n, num_pushes))
    return FrozenColumn(
        robot=load_robot(column.robot, ground_for(column.spans)),
        robot_facts=robot_facts(column.robot),
        catalogue=catalogue,
        instances=instances,
        commands=commands,
        push_steps=place_pushes(pushes, task.push),
        noise_seed=seed,
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


def robot_facts(source: str) -> dict[str, Any]:
    """Return the numbers that identify a robot, by its name or file, as plain data."""
    if not is_mjcf(source):
        facts = encode(load_body(source))
        return {key: value for key, value in facts.items() if key not in WORDS}
    robot = load_robot(source)
    fields = [(robot.model, name) for name in MODEL_FIELDS]
    fields += [(robot.model.opt, name) for name in OPTIONS]
    fields += [(robot, name) for name in ROBOT_FIELDS]
    # The compiler computes some of these: nine digits are the same on all machines. As
    # text, since JSON has no word for a motor fact that the file lacks.
    return {
        name: " ".join(f"{x:.9g}" for x in np.ravel(getattr(owner, name)))
        for owner, name in fields
    }
