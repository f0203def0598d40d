"""A policy as one file for a robot: built, described, and checked against its checkpoint."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from horizon_rl.domains import Catalogue, middle_instance, paper_catalogue
from horizon_rl.learning.checkpoint import load_checkpoint
from horizon_rl.physics import Pool, build_pool
from horizon_rl.physics.motors import MOTOR_GROUP, Motors
from horizon_rl.policies.check import compare, measure_latency
from horizon_rl.policies.learned import load_actor
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
from horizon_rl.task import NUM_ACTIONS, NUM_ACTOR, TaskCfg

TOLERANCE = 1e-4
"""Largest difference of an action that is taken for rounding; times the action scale it
is a joint angle, 25 millionths of a radian."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Exported:
    """A policy ready to be written, and what was found out about it."""

    content: bytes
    """Of the ONNX file."""
    metadata: dict[str, Any]
    """What is in the file: see `horizon_rl.policies.metadata`."""
    inputs: dict[str, tuple[int, ...]]
    outputs: dict[str, tuple[int, ...]]
    largest_difference: float
    """From the checkpoint's actions, over `NUM_STEPS` steps."""
    latency_median_ms: float
    """Of one step, on one thread."""
    latency_p99_ms: float


def export_policy(
    source: str,
    robot: str = "go2",
    motors: Motors = "scaled",
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> Exported:
    """Turn a checkpoint into an ONNX file's content, and check that against it.

    Args:
        source: Shipped policy, run or checkpoint.
        robot: Preset, intervention (go2+stilts) or MJCF file that joints, pose and
            gains in the metadata are for.
        motors: Gains and limits as trained, scaled to the body, or the robot's own.
        tell: Called with (steps checked, steps to check).
    """
    path = find_checkpoint(source)
    checkpoint = load_checkpoint(path)
    body = load_robot(robot)
    try:
        actor = load_actor(checkpoint, NUM_ACTOR, NUM_ACTIONS)
        task = decode(TaskCfg, checkpoint.record.config.get("task"))
        catalogue = decode(Catalogue, checkpoint.record.catalogue)
        training = describe_training(source, checkpoint.record, catalogue, task)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    pool = nominal_pool(body, catalogue, motors)
    metadata = {
        "schema": SCHEMA,
        "name": Path(source).resolve().name,
        "kind": actor.kind,
        "window": actor.window,
        **describe_control(task),
        **describe_robot(pool, motors),
        **training,
    }
    content = to_onnx(actor, {METADATA: dumps(metadata)})
    file = OnnxPolicy(content)
    difference, observations = compare(actor, file, pool, task, tell)
    # NaN fails the comparison too.
    if not difference <= TOLERANCE:
        raise RunError(
            f"the file's actions differ from the checkpoint's by up to {difference:.2g}; "
            f"accepted: {TOLERANCE:g}. Nothing was written"
        )
    median_ms, p99_ms = measure_latency(file, observations)
    return Exported(
        content=content,
        metadata=metadata,
        inputs=file.inputs,
        outputs=file.outputs,
        largest_difference=difference,
        latency_median_ms=median_ms,
        latency_p99_ms=p99_ms,
    )


def nominal_pool(robot: Robot, trained: Catalogue, motors: Motors) -> Pool:
    """Build one instance: every parameter in the middle of its baseline range.

    Only motors are taken from the catalogue of the training, since they are all that a
    deployment must set up as in training. So a policy can be exported even if the effect of
    another parameter of its catalogue is not at hand here.
    """
    kept = [g for g in trained.groups if g.name == MOTOR_GROUP and motors == "scaled"]
    others = [g for g in paper_catalogue().groups if g.name != MOTOR_GROUP]
    catalogue = Catalogue((*kept, *others))
    first = np.zeros(1, dtype=int)
    return build_pool([robot], catalogue, middle_instance(catalogue), first)


def standalone_mjcf(robot: str) -> str:
    """Return a preset or intervention as an MJCF file that needs no other."""
    spec = build_spec(load_body(robot))
    spec.modelname = robot
    spec.compile()
    return spec.to_xml()
