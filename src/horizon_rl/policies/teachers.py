"""Policies as teachers: their actors, their domains, and what they cost."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from horizon_rl.curriculum.methods import Teacher
from horizon_rl.domains import Catalogue
from horizon_rl.learning.checkpoint import CheckpointRecord
from horizon_rl.learning.networks import Actor
from horizon_rl.policies.learned import load_actor
from horizon_rl.policies.load import load_policy
from horizon_rl.policies.shipped import find_checkpoint, model_names, read_model
from horizon_rl.runs.journal import replay
from horizon_rl.runs.lock import is_locked
from horizon_rl.runs.paths import has_run, journal_of
from horizon_rl.support.errors import InputError
from horizon_rl.task import TaskCfg


class LoadedTeacher(NamedTuple):
    """A teacher, ready to label."""

    actor: Actor
    about: Teacher
    source: str
    """What finds exactly these weights again, also after its run has gone on."""


def split_teacher(text: str) -> tuple[str, str]:
    """Return a teacher's policy, and its levels; "" stands for those of its record."""
    name, at, levels = text.rpartition("@")
    return (name, levels) if at and "=" in levels else (text, "")


def load_teacher(
    text: str, catalogue: Catalogue, task: TaskCfg, num_steps: int
) -> LoadedTeacher:
    """Load a teacher by what it is called on the command line.

    Its domain is what its record says, or levels after an @: runs/mine@mass=0.5,com=0.2.
    No policy of ours, or one for another task or catalogue than the run's, is refused.
    """
    name, levels = split_teacher(text)
    path, run = find_checkpoint(name), Path(name)
    is_shipped = name in model_names()  # Whatever folders are called.
    if not is_shipped and has_run(run) and is_locked(journal_of(run)):
        raise InputError(
            f"teacher {name} is still being trained: wait for its end, or name one of its "
            "checkpoints"
        )
    actor, own_task, record = load_actor(path, num_steps)
    policy = load_policy(str(path), name)
    policy.check_parameters(catalogue)
    if own_task.action_scale != task.action_scale:
        raise InputError(
            f"teacher {name} has an action scale of {own_task.action_scale:g}; the run's "
            f"is {task.action_scale:g} (--task.action-scale)"
        )
    try:
        domain = catalogue.parse_levels(levels) if levels else record.levels
        catalogue.coverage(domain)  # Refuses groups that the catalogue lacks.
    except InputError as error:
        raise InputError(f"teacher {name}: {error}") from error
    assert policy.digest is not None
    about = Teacher(
        name=name,
        levels={group: level for group, level in domain.items() if level},
        env_steps=_cost_of(name, record),
        digest=policy.digest,
    )
    found = name if is_shipped else str(path.resolve())
    return LoadedTeacher(actor, about, f"{found}{levels and '@'}{levels}")


def _cost_of(name: str, record: CheckpointRecord) -> int:
    """Return the env steps of a shipped policy or a run, all of them.

    A checkpoint of its own only knows those before it.
    """
    if name in model_names():
        return read_model(name).env_steps
    if has_run(run := Path(name)):
        return replay(journal_of(run)).state.env_steps
    return record.counters.get("env_steps", 0)


def check_teachers(teachers: list[LoadedTeacher], known: tuple[Teacher, ...]) -> None:
    """Refuse teachers other than those that a run was started with."""
    for teacher, before in zip(teachers, known, strict=True):
        # By checkpoint, as it is found again, it knows a part of its cost.
        named = {"name": before.name, "env_steps": before.env_steps}
        if replace(teacher.about, **named) != before:
            raise InputError(
                f"{teacher.source} is not the teacher that the run was started with "
                f"({before.name}): other weights or another domain"
            )
