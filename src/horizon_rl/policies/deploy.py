"""From a checkpoint to a file that is known to act alike."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from horizon_rl.domains import Catalogue
from horizon_rl.evaluation.body import load_evaluated_body
from horizon_rl.evaluation.suite import Motors
from horizon_rl.learning import TransformerActor
from horizon_rl.learning.checkpoint import CheckpointRecord, load_checkpoint
from horizon_rl.policies.check import Latency, compare, measure_latency
from horizon_rl.policies.export import METADATA, to_onnx
from horizon_rl.policies.learned import load_actor
from horizon_rl.policies.metadata import (
    Metadata,
    Training,
    describe_control,
    describe_joints,
    describe_limits,
    describe_observation,
    describe_robot,
)
from horizon_rl.policies.nominal import nominal_pool
from horizon_rl.policies.onnx_robot import OnnxRobot
from horizon_rl.policies.shipped import find_checkpoint, model_names, read_model
from horizon_rl.robots import build_spec, load_body
from horizon_rl.support.errors import InputError, RunError
from horizon_rl.support.records import decode, dumps, encode
from horizon_rl.task import NUM_ACTIONS, NUM_ACTOR, TaskCfg

TOLERANCE = 1e-4
"""Largest difference of an action that is taken for rounding; times the action scale it
is a joint angle, 25 millionths of a radian."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Exported:
    """A policy ready to be written, and what was found out about it."""

    content: bytes
    """Of the ONNX file."""
    metadata: Metadata
    inputs: dict[str, tuple[int, ...]]
    outputs: dict[str, tuple[int, ...]]
    largest_difference: float
    """From the checkpoint's actions, over `NUM_STEPS` steps."""
    latency: Latency


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
    body = load_evaluated_body(robot).robot
    try:
        actor = load_actor(checkpoint, NUM_ACTOR, NUM_ACTIONS)
        task = decode(TaskCfg, checkpoint.record.config.get("task"))
        catalogue = decode(Catalogue, checkpoint.record.catalogue)
        training = describe_training(source, checkpoint.record, catalogue)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    pool = nominal_pool(body, catalogue, motors)
    is_transformer = isinstance(actor, TransformerActor)
    metadata = Metadata(
        name=Path(source).resolve().name,
        kind="transformer" if is_transformer else "mlp",
        window=actor.cfg.window if is_transformer else 0,
        observation=describe_observation(task),
        control=describe_control(task),
        joints=describe_joints(pool),
        robot=describe_robot(body, motors),
        limits=describe_limits(task),
        training=training,
    )
    content = to_onnx(actor, {METADATA: dumps(encode(metadata))})
    deployed = OnnxRobot(content)
    found = compare(actor, deployed, pool, task, tell)
    # NaN fails the comparison too.
    if not found.largest_difference <= TOLERANCE:
        raise RunError(
            f"the file's actions differ from the checkpoint's by up to "
            f"{found.largest_difference:.2g}; accepted: {TOLERANCE:g}. Nothing was written"
        )
    return Exported(
        content=content,
        metadata=metadata,
        inputs=deployed.inputs,
        outputs=deployed.outputs,
        largest_difference=found.largest_difference,
        latency=measure_latency(deployed, found.observations),
    )


def describe_training(
    source: str, record: CheckpointRecord, catalogue: Catalogue
) -> Training:
    """Tell how a policy came about, as far as its checkpoint does."""
    config = record.config
    shipped = None
    if source in model_names():
        shipped = encode(read_model(source))
        del shipped["results"]
    return Training(
        version=record.version,
        weights_sha256=record.weights_sha256,
        seed=record.seed,
        method=config.get("method"),
        groups=config.get("groups"),
        bodies=config.get("robot"),
        counters=record.counters,
        levels=record.levels,
        ranges={
            name: (span.low, span.high)
            for name, span in catalogue.ranges(record.levels).items()
        },
        shipped=shipped,
    )


def standalone_mjcf(robot: str) -> str:
    """Return a preset or intervention as an MJCF file that needs no other."""
    spec = build_spec(load_body(robot))
    spec.modelname = robot
    spec.compile()
    return spec.to_xml()
