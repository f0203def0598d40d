"""A policy as one file for a robot: built, described, and checked against its checkpoint."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from horizon_rl.domains import Catalogue, middle_instance, paper_catalogue
from horizon_rl.learning import Actor
from horizon_rl.physics import CONTROL_DT, CpuBackend, Pool, build_pool, own_effects
from horizon_rl.physics.motors import MOTOR_GROUP, Motors
from horizon_rl.policies.learned import LearnedPolicy, load_actor
from horizon_rl.policies.metadata import (
    SCHEMA,
    describe_control,
    describe_robot,
    describe_training,
)
from horizon_rl.policies.onnx import OnnxPolicy
from horizon_rl.policies.onnx_graph import METADATA, to_onnx
from horizon_rl.policies.shipped import find_checkpoint
from horizon_rl.robots import Robot, build_spec, load_body, load_robot
from horizon_rl.support.errors import InputError, RunError
from horizon_rl.support.records import decode, dumps
from horizon_rl.support.trust import require_trust, trust_code
from horizon_rl.task import NUM_ACTOR, TaskCfg, VelocityEnv, draw_scenarios

NUM_STEPS = 1000
"""Steps of the check, eight times the transformer's window: its cache slides all the
while."""
WARM_UP = 100
"""Steps before their latency is measured."""
TOLERANCE = 1e-4
"""Largest difference of an action that is taken for rounding; times the action scale it
is a joint angle, 25 millionths of a radian."""


@dataclass(frozen=True, eq=False)
class Exported:
    """A policy ready to be written, and what was found out about it."""

    content: bytes
    """Of the ONNX file."""
    metadata: dict[str, Any]
    """What is in the file: see `horizon_rl.policies.metadata`."""
    policy: OnnxPolicy
    """The file as it runs."""
    largest_difference: float
    """From the checkpoint's actions, over `NUM_STEPS` steps."""
    latency_ms: tuple[float, float]
    """Of one step, on one thread: median and 99th percentile."""


def export_policy(
    source: str,
    robot: str = "go2",
    motors: Motors = "scaled",
    tell: Callable[[int, int], None] = lambda done, total: None,
    *,
    trust: bool = False,
) -> Exported:
    """Turn a checkpoint into an ONNX file's content, and check that against it.

    Args:
        source: Shipped policy, run or checkpoint.
        robot: Preset, intervention (go2+stilts) or MJCF file that joints, pose and
            gains in the metadata are for.
        motors: Gains and limits as trained, scaled to the body, or the robot's own.
        tell: Called with (steps checked, steps to check).
        trust: Run code that the checkpoint names even if the user has never run it.
    """
    actor, task, record = load_actor(find_checkpoint(source))
    if actor.is_oracle:
        raise InputError(
            f"{source} is an oracle: it reads the parameters of its instance, which no "
            "robot knows. Export a policy that sees only what a robot measures"
        )
    catalogue = decode(Catalogue, record.catalogue)
    code = own_effects(nominal_catalogue(catalogue, motors)).values()
    if trust:
        trust_code(code)
    require_trust(source, code)
    pool = nominal_pool(load_robot(robot), catalogue, motors)
    metadata = {
        "schema": SCHEMA,
        "name": Path(source).resolve().name,
        "kind": actor.kind,
        "window": actor.window,
        **describe_control(task),
        **describe_robot(pool, motors),
        **describe_training(source, record, catalogue, task),
    }
    content = to_onnx(actor, {METADATA: dumps(metadata)})
    file = OnnxPolicy(content)
    difference, observations = _compare(actor, file, pool, task, tell)
    # NaN fails the comparison too.
    if not difference <= TOLERANCE:
        raise RunError(
            f"the file's actions differ from the checkpoint's by up to {difference:.2g}; "
            f"accepted: {TOLERANCE:g}. Nothing was written"
        )
    latency_ms = _measure_latency(file, observations)
    return Exported(content, metadata, file, difference, latency_ms)


@torch.no_grad()
def _compare(
    actor: Actor,
    file: OnnxPolicy,
    pool: Pool,
    task: TaskCfg,
    tell: Callable[[int, int], None],
) -> tuple[float, np.ndarray]:
    """Let the actor walk one robot, and ask the file at every step what it would do.

    Each keeps its own memory, so that differences add up if they can. Half way the
    episode ends, and both must forget it.

    Returns:
        The largest difference of any action, NaN where either is not a number, and the
        observations [steps, 45].
    """
    task = replace(task, episode_s=NUM_STEPS * CONTROL_DT / 2.0)
    env = VelocityEnv(CpuBackend(pool.robot, num_worlds=1, num_threads=1), task)
    policies = LearnedPolicy(actor), file
    observations = env.begin(draw_scenarios(pool, task, np.random.default_rng(0)), 0)
    differences = np.zeros(NUM_STEPS)
    seen = np.zeros((NUM_STEPS, NUM_ACTOR), np.float32)
    for step in range(NUM_STEPS):
        seen[step] = observations["actor"].numpy()
        action, twin = (policy.act(observations) for policy in policies)
        differences[step] = np.abs(action.numpy() - twin.numpy()).max()
        observations, _, done, _ = env.step(action)
        for policy in policies:
            policy.reset(done)
        tell(step + 1, NUM_STEPS)
    # `max` carries a NaN through.
    return float(differences.max()), seen


def _measure_latency(file: OnnxPolicy, observations: np.ndarray) -> tuple[float, float]:
    """Time single steps, one after the other; return median and 99th percentile, ms."""
    times, memory = [], file.blank(1)
    for obs in observations[:, None]:
        begin = perf_counter()
        file.step(obs, memory)
        times.append(perf_counter() - begin)
    median, p99 = 1e3 * np.percentile(times[WARM_UP:], (50, 99))
    return float(median), float(p99)


def nominal_pool(robot: Robot, trained: Catalogue, motors: Motors) -> Pool:
    """Build one instance: every parameter in the middle of its baseline range."""
    catalogue = nominal_catalogue(trained, motors)
    first = np.zeros(1, dtype=int)
    return build_pool([robot], catalogue, middle_instance(catalogue), first)


def nominal_catalogue(trained: Catalogue, motors: Motors) -> Catalogue:
    """Return what a nominal instance is drawn from.

    Only motors are taken from the catalogue of the training, since they are all that a
    deployment must set up as in training. So a policy can be exported even if the effect of
    another parameter of its catalogue is not at hand here.
    """
    kept = [g for g in trained.groups if g.name == MOTOR_GROUP and motors == "scaled"]
    others = [g for g in paper_catalogue().groups if g.name != MOTOR_GROUP]
    return Catalogue((*kept, *others))


def standalone_mjcf(robot: str) -> str:
    """Return a preset or intervention as an MJCF file that needs no other."""
    spec = build_spec(load_body(robot))
    spec.modelname = robot
    spec.compile()
    return spec.to_xml()
