"""Worlds for experiments: exact parameters, rigid robots, starts in the air."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
import torch

from horizon_rl.domains import AtLevels, Catalogue, paper_catalogue
from horizon_rl.physics import Backend, CpuBackend, Pool, build_pool
from horizon_rl.robots import (
    FLAT,
    JOINT_NAMES,
    Ground,
    Morphology,
    Robot,
    build_robot,
    generate,
    load_preset,
    preset_names,
)

GRAVITY = 9.81
PHYSICS_DT = 0.005

NOMINAL = {
    "actuation.effort_limit": 40.0,
    "actuation.velocity_limit": 30.0,
    "actuation.stiffness": 40.0,
    "actuation.damping": 1.0,
    "mass.scale": 1.0,
    "contact.static_friction": 1.0,
    "contact.dynamic_friction": 1.0,
    "inertia.scale": 1.0,
    "reset.joint_position_scale": 1.0,
    "sensing.noise_scale": 1.0,
    "damage.leg_mass": 1.0,
    "damage.stuck_at": 1.0,
}
"""Parameters whose neutral value is not zero."""

STRONG = {
    "actuation.effort_limit": 1000.0,
    "actuation.stiffness": 200.0,
    "actuation.damping": 5.0,
}
"""Motors that hold any weight: what is left is the physics of the body."""


def exact_pool(
    robots: Sequence[Robot],
    n: int = 1,
    values: Mapping[str, Any] | None = None,
    catalogue: Catalogue | None = None,
    **options: Any,
) -> Pool:
    """Make n instances that are nominal but for `values`, one entry per instance.

    Instance i has body i, again from the first where there are fewer bodies.
    """
    catalogue = catalogue or paper_catalogue()
    chosen = NOMINAL | dict(values or {})
    instances = {}
    for name, parameter in catalogue.parameters.items():
        shape = (n,) if parameter.draws == 1 else (n, parameter.draws)
        value = np.asarray(chosen.get(name, 0.0), dtype=float)
        instances[name] = np.broadcast_to(value, shape).copy()
    body_ids = np.arange(n) % len(robots)
    return build_pool(robots, catalogue, instances, body_ids, **options)


def over_limits(catalogue: Catalogue | None = None) -> AtLevels:
    """Draw every parameter from its whole limit range."""
    catalogue = catalogue or paper_catalogue()
    return AtLevels(dict.fromkeys(catalogue.names, 1.0))


def some_robots(num_generated: int, seed: int = 0) -> list[Robot]:
    """All presets, then generated bodies."""
    bodies = generate(np.random.default_rng(seed), num_generated)
    return [build_robot(b) for b in [*map(load_preset, preset_names()), *bodies]]


def rigid(body: Morphology, ground: Ground = FLAT) -> Robot:
    """Lock all joints in the default pose: a table with the robot's mass and feet."""
    locked = tuple(zip(JOINT_NAMES, body.default_pose_rad.tolist(), strict=True))
    return build_robot(replace(body, locked=locked), ground)


def lifted(pool: Pool, height: float | np.ndarray) -> Pool:
    """Start `height` higher, one for all or one each."""
    qpos = pool.start_qpos.copy()
    qpos[:, 2] += height
    return replace(pool, start_qpos=qpos)


def begin(pool: Pool, num_threads: int = 2) -> CpuBackend:
    """Put each row of a pool into a world of its own."""
    backend = CpuBackend(pool.robot, len(pool), num_threads)
    backend.load(pool)
    everyone = torch.ones(len(pool), dtype=torch.bool)
    backend.reset(everyone, torch.arange(len(pool)))
    return backend


def hold(backend: Backend, pool: Pool, control_steps: int) -> None:
    """Aim at the default pose for some time."""
    for _ in range(control_steps):
        backend.step(torch.from_numpy(pool.default_pose))


def varied_targets(pool: Pool, control_steps: int, seed: int = 0) -> torch.Tensor:
    """Random targets around the default poses, [steps, n, 12], new ten times a second.

    Their spread goes from that of a walking policy to that of a thrashing one.
    """
    rng = np.random.default_rng(seed)
    n = len(pool)
    blocks = rng.normal(0.0, 1.0, (-(-control_steps // 5), n, 12))
    blocks *= rng.uniform(0.1, 0.8, (n, 1))
    targets = pool.default_pose + np.repeat(blocks, 5, axis=0)
    return torch.from_numpy(targets[:control_steps])


def trajectory(backend: Any) -> np.ndarray:
    """The exact positions and velocities of all worlds, on either backend."""
    if isinstance(backend, CpuBackend):
        return np.concatenate([backend._qpos, backend._qvel], axis=1)
    engine = backend._engine
    return torch.cat([engine["qpos"], engine["qvel"]], dim=1).cpu().double().numpy()


def model_of(pool: Pool, row: int) -> mujoco.MjModel:
    """Put a row's numbers into a plain model, to measure it with MuJoCo."""
    model = copy.copy(pool.robot.model)
    for name, values in pool.fields.items():
        getattr(model, name)[:] = values[row].reshape(getattr(model, name).shape)
    return model


def com_velocity(pool: Pool, backend: Backend) -> np.ndarray:
    """Velocity of each robot's centre of mass, world frame, [n, 3]."""
    velocities = []
    for row, state in enumerate(trajectory(backend)):
        model = model_of(pool, row)
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = state[: model.nq], state[model.nq :]
        mujoco.mj_forward(model, data)
        mujoco.mj_subtreeVel(model, data)
        velocities.append(data.subtree_linvel[pool.robot.trunk_body_id].copy())
    return np.array(velocities)
