"""Pools: many instances, their derived constants computed once.

A world that resets takes a row of the pool: no model is compiled and no constant is
computed on the way. A frozen pool is also what an evaluation suite consists of.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from mjbatch import Batch

from horizon_rl.domains import (
    Catalogue,
    Distribution,
    Instances,
    Parameter,
    paper_catalogue,
)
from horizon_rl.domains.distribution import MARKS
from horizon_rl.physics import effects as known_effects
from horizon_rl.physics.draft import DERIVED_FIELDS, WORLD_FIELDS, PoolDraft, draft_pool
from horizon_rl.physics.effects import Effect
from horizon_rl.physics.motors import with_servos
from horizon_rl.physics.stance import reach_down, stand_again
from horizon_rl.physics.terrain import clearance, lay_ground
from horizon_rl.robots import REFERENCE, Morphology, Robot, load_preset
from horizon_rl.support.errors import InputError, unknown

CLEARANCE_M = 1e-3
"""Air below the lowest foot at the start."""

BODY_DESCRIPTORS = ("mass", "leg_length", "thigh_length", "calf_length", "height")
"""What the critic is told of a body, each relative to the reference body."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pool:
    """n instances, ready to be copied into worlds. Arrays have one row each."""

    robot: Robot
    """Template: names, addresses and sizes that all bodies share."""
    instances: Instances
    """The parameters as drawn, in the reference body's units."""
    body_ids: np.ndarray
    """[n] which of the bodies each instance has."""
    fields: dict[str, np.ndarray]
    """mjModel fields: `WORLD_FIELDS`, and what else an effect changes."""
    effort: np.ndarray
    velocity_limit: np.ndarray
    wrench: np.ndarray
    push_velocity: np.ndarray
    start_qpos: np.ndarray
    """[n, nq] the start: scaled pose, at its place on the ground, just above it."""
    start_qvel: np.ndarray
    """[n, nv]"""
    default_pose: np.ndarray
    """[n, 12] canonical angles that actions are offsets from, rad."""
    patch: np.ndarray
    """[n] which patch of the ground each stands on, where it has several."""
    signals: dict[str, np.ndarray] = field(default_factory=dict)
    """What becomes of signals between policy and robot: see `PoolDraft.signals`."""
    standing_height: np.ndarray
    """[n] height of the trunk in the default pose, m."""
    parameters: np.ndarray
    """[n, draws] all parameters, their limit ranges mapped to [-1, 1]."""
    body: np.ndarray
    """[n, 5] the body, `BODY_DESCRIPTORS`."""
    marks: dict[str, np.ndarray] = field(default_factory=dict)
    """[n] what a distribution chose, by the name of a group or its own; see there."""

    def __len__(self) -> int:
        return len(self.body_ids)


def sample_pool(
    robots: Sequence[Robot],
    catalogue: Catalogue,
    distribution: Distribution,
    n: int,
    rng: np.random.Generator,
    effects: Mapping[str, Effect] | None = None,
) -> Pool:
    """Draw n instances from `distribution`, each with one of the bodies `robots`."""
    if not robots or n < 1:
        asked = f"a pool of {n} instances of {len(robots)} bodies"
        raise InputError(f"{asked}; at least 1 of each is needed")
    body_ids = rng.integers(len(robots), size=n)
    drawn = distribution.sample(catalogue, n, rng)
    names = (*catalogue.names, *MARKS)
    marks = {name: drawn.pop(name) for name in names if name in drawn}
    pool = build_pool(robots, catalogue, drawn, body_ids, effects)
    return replace(pool, marks=marks) if marks else pool


def build_pool(
    robots: Sequence[Robot],
    catalogue: Catalogue,
    instances: Instances,
    body_ids: np.ndarray,
    effects: Mapping[str, Effect] | None = None,
) -> Pool:
    """Turn drawn instances into worlds: apply all parameters, derive all constants.

    By the package's effects and those that the catalogue names, unless told otherwise.
    """
    effects = known_effects.effects_of(catalogue) if effects is None else effects
    known_effects.check_catalogue(catalogue, effects)
    _check_instances(instances, catalogue, len(body_ids))
    known_effects.check_values(instances, effects)
    draft = draft_pool(robots, body_ids)
    bodies = _describe_bodies(robots)
    parameters = catalogue.parameters.items()
    scales = {name: _scale(each, bodies)[body_ids] for name, each in parameters}
    known_effects.apply_effects(draft, instances, scales, effects)
    _complete_motors(draft, robots, bodies, body_ids)
    _finish(draft)
    remaining = lay_ground(draft)
    start_qpos, start_qvel = _start_states(draft, robots, body_ids)
    height = np.array([r.standing_height_m for r in robots])[body_ids]
    _derive(draft, start_qpos, height)
    taken = ("robot", "effort", "velocity_limit", "wrench", "push_velocity")
    return Pool(
        fields=dict(draft.fields),
        **{
            name: getattr(draft, name)
            for name in (*taken, "default_pose", "patch", "signals")
        },
        instances=instances,
        body_ids=body_ids,
        start_qpos=start_qpos,
        start_qvel=start_qvel,
        standing_height=height,
        parameters=_normalise(instances | remaining, catalogue),
        body=bodies[body_ids],
    )


def join_pools(pools: Sequence[Pool]) -> Pool:
    """Put pools of the same bodies one after the other."""
    if len({pool.robot.name for pool in pools}) != 1:
        raise InputError("pools of different robots cannot be joined")

    def join(parts: list[Any]) -> Any:
        if isinstance(parts[0], Mapping):
            return {key: join([part[key] for part in parts]) for key in parts[0]}
        return np.concatenate(parts)

    columns = [column.name for column in fields(Pool) if column.name != "robot"]
    joined = {name: join([getattr(pool, name) for pool in pools]) for name in columns}
    return Pool(robot=pools[0].robot, **joined)


def _check_instances(instances: Instances, catalogue: Catalogue, n: int) -> None:
    for name in instances:
        if name not in catalogue.parameters:
            raise InputError(unknown("parameter", name, catalogue.parameters))
    for name, parameter in catalogue.parameters.items():
        shape = (n,) if parameter.draws == 1 else (n, parameter.draws)
        found = np.shape(instances.get(name, np.nan))
        if found != shape:
            raise InputError(f"{name}: needs values of shape {shape}, found {found}")


def _complete_motors(
    draft: PoolDraft, robots: Sequence[Robot], bodies: np.ndarray, body_ids: np.ndarray
) -> None:
    """Scale gains and speed, where neither facts nor a parameter tell them, to the body.

    They are those in the middle of the paper's baseline. Without a torque limit nothing
    is known of a motor.
    """
    unknown_rows = np.isnan(draft.effort).any(axis=1)
    if unknown_rows.any():
        robot = robots[body_ids[np.argmax(unknown_rows)]]
        raise InputError(
            f"nothing tells the torque limits of '{robot.name}': its facts do not, and the "
            "catalogue has no actuation.effort_limit"
        )
    usual = paper_catalogue().parameters
    for name in ("stiffness", "damping", "velocity_limit"):
        values, parameter = getattr(draft, name), usual[f"actuation.{name}"]
        scaled = parameter.baseline.middle * _scale(parameter, bodies)[body_ids]
        np.copyto(values, scaled[:, None], where=np.isnan(values))


def _scale(parameter: Parameter, bodies: np.ndarray) -> np.ndarray:
    """Return how a parameter grows from the reference to each body."""
    sizes = bodies[:, :2].tolist()
    return np.array([parameter.scale_for(mass, length) for mass, length in sizes])


def _describe_bodies(robots: Sequence[Robot]) -> np.ndarray:
    """Describe each body relative to the reference, [bodies, 5]."""

    def describe(body: Robot | Morphology) -> tuple[float, ...]:
        lengths = body.leg_length_m, body.thigh_length_m, body.calf_length_m
        return body.body_mass_kg, *lengths, body.standing_height_m

    return np.array(list(map(describe, robots))) / describe(load_preset(REFERENCE))


def _finish(draft: PoolDraft) -> None:
    """Write what several parameters decide together into the model's fields."""
    given = np.isfinite(draft.friction)
    sliding = draft.fields["geom_friction"][:, :, 0]
    sliding[np.ix_(given, draft.ground_geom_ids)] = draft.friction[given, None]
    draft.fields["actuator_gainprm"][:, :, 0] = draft.stiffness
    draft.fields["actuator_biasprm"][:, :, 1] = -draft.stiffness
    draft.fields["actuator_biasprm"][:, :, 2] = -draft.damping


def _start_states(
    draft: PoolDraft, robots: Sequence[Robot], body_ids: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    robot = draft.robot
    qpos = np.stack([r.model.key("stand").qpos for r in robots])[body_ids]
    qpos[:, :2] = draft.start_xy
    qpos[:, robot.qpos_adr] = robot.source_position(draft.start_position)
    qvel = np.zeros((len(qpos), robot.model.nv))
    qvel[:, robot.dof_adr] = robot.joint_sign * draft.start_velocity
    return qpos, qvel


def _derive(draft: PoolDraft, qpos: np.ndarray, height: np.ndarray) -> None:
    """Compute MuJoCo's derived constants, and put `qpos` just above the ground.

    Where an effect has changed how the robot stands, also `height` and tilt of its trunk.
    """
    batch = Batch(with_servos(draft.robot.model), len(qpos))
    for name, values in draft.fields.items():
        batch.expand(name)[:] = values
    derived = {name: batch.expand(name) for name in DERIVED_FIELDS}
    batch.set_const()
    for name, values in derived.items():
        draft.fields[name] = values.copy()
    assert set(draft.fields) >= set(WORLD_FIELDS)
    if draft.reshaped.any():
        stand_again(batch, draft, qpos, height)
    batch.bind("qpos")[:] = qpos
    position, rotation = batch.bind("geom_xpos"), batch.bind("geom_xmat")
    batch.forward()
    lowest = np.full(len(qpos), np.inf)
    for geom in draft.ground_geom_ids:
        size, up = draft.fields["geom_size"][:, geom], rotation[:, geom, 6:]
        reach = reach_down(draft.robot.model, geom, size, up)
        above = clearance(draft, position[:, geom], size)
        lowest = np.minimum(lowest, above - reach)
    qpos[:, 2] += CLEARANCE_M - lowest


def privileged_numbers(catalogue: Catalogue) -> Iterator[tuple[str, int]]:
    """Name what a world's instance shows, in its order: the body, then every draw."""
    yield from ((name, 0) for name in BODY_DESCRIPTORS)
    for name, parameter in catalogue.parameters.items():
        yield from ((name, draw) for draw in range(parameter.draws))


def _normalise(instances: Instances, catalogue: Catalogue) -> np.ndarray:
    """Map every parameter's limit range to [-1, 1]; a constant is 0."""
    columns = []
    for name, parameter in catalogue.parameters.items():
        low, width = parameter.limit.low, parameter.limit.width
        values = instances[name].reshape(len(instances[name]), -1)
        columns.append(2.0 * (values - low) / width - 1.0 if width else 0.0 * values)
    return np.concatenate(columns, axis=1)
